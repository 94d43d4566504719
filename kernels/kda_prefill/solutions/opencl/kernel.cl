// A group a sequence and head: each work item keeps one row of the state while the tokens stream past.
#define MOST 128  // channels

static float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

__kernel void kda_prefill(__global const float* q, __global const float* k, __global const float* v,
                          __global const float* g, __global const float* beta, __global const float* A_log,
                          __global const float* dt_bias, __global const long* cu_seqlens,
                          __global const float* initial_state, float scale, __global float* out,
                          __global float* final_state, long tokens, long heads, long dim, long sequences) {
    __local float query[MOST], key[MOST], decay[MOST];
    const long h = get_group_id(0), n = get_group_id(1);
    const int j = get_local_id(0);
    const long own = ((n * heads + h) * dim + j) * dim;
    const float slope = exp(A_log[h]);
    float row[MOST];
    for (int i = 0; i < dim; i++) row[i] = initial_state[own + i];
    for (long t = cu_seqlens[n]; t < cu_seqlens[n + 1]; t++) {
        const long at = (t * heads + h) * dim;
        barrier(CLK_LOCAL_MEM_FENCE);
        query[j] = q[at + j];
        key[j] = k[at + j];
        decay[j] = exp(-5.0f * sigmoid(slope * (g[at + j] + dt_bias[h * dim + j])));
        barrier(CLK_LOCAL_MEM_FENCE);
        float query_squares = 0.0f, key_squares = 0.0f, known = 0.0f, read = 0.0f;
        for (int i = 0; i < dim; i++) {
            query_squares += query[i] * query[i];
            key_squares += key[i] * key[i];
            row[i] *= decay[i];
            known += row[i] * key[i];
        }
        const float query_norm = 1.0f / sqrt(query_squares + 1e-6f), key_norm = 1.0f / sqrt(key_squares + 1e-6f);
        const float strength = sigmoid(beta[t * heads + h]);
        const float update = strength * (v[at + j] - known * key_norm);
        for (int i = 0; i < dim; i++) {
            row[i] += update * key_norm * key[i];
            read += row[i] * query[i];
        }
        out[at + j] = scale * query_norm * read;
    }
    for (int i = 0; i < dim; i++) final_state[own + i] = row[i];
}
