// A group a query: each of its 64 work items scores one key of the tile, then sums one channel of the values.
__kernel void relpos_txl_fwd(__global const float* q, __global const float* k, __global const float* v,
                             __global const float* r, __global const float* u, __global const float* w, float scale,
                             __global float* out, long heads, long tokens) {
    __local float content[dim], relative[dim], weight[dim];
    const long i = get_group_id(0), h = get_group_id(1);
    const int t = get_local_id(0);
    __global const float* keys = k + h * tokens * dim;
    __global const float* values = v + h * tokens * dim;
    __global const float* offsets = r + h * (2 * tokens - 1) * dim;
    const float query = q[(h * tokens + i) * dim + t];
    content[t] = scale * (query + u[h * dim + t]);
    relative[t] = scale * (query + w[h * dim + t]);
    float largest = -INFINITY, total = 0.0f, sum = 0.0f;
    for (long first = 0; first < tokens; first += dim) {
        const long j = first + t;
        barrier(CLK_LOCAL_MEM_FENCE);
        float score = -INFINITY;
        if (j < tokens) {
            const long row = i - j + tokens - 1;
            score = 0.0f;
            for (int d = 0; d < dim; d++)
                score += content[d] * keys[j * dim + d] + relative[d] * offsets[row * dim + d];
        }
        weight[t] = score;
        barrier(CLK_LOCAL_MEM_FENCE);
        float top = largest;
        for (int x = 0; x < dim; x++) top = fmax(top, weight[x]);
        barrier(CLK_LOCAL_MEM_FENCE);
        weight[t] = exp(score - top);
        barrier(CLK_LOCAL_MEM_FENCE);
        const float rescale = exp(largest - top);
        total *= rescale;
        sum *= rescale;
        for (int x = 0; x < dim; x++) {
            total += weight[x];
            if (first + x < tokens) sum += weight[x] * values[(first + x) * dim + t];
        }
        largest = top;
    }
    out[(h * tokens + i) * dim + t] = sum / total;
}
