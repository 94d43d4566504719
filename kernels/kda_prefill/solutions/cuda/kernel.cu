// A block a sequence and head: each thread keeps one row of the state in registers while the tokens stream past.
#include "task.h"

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

template <int dim>
__global__ void __launch_bounds__(dim)
    stream_tokens(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                  const float* __restrict__ g, const float* __restrict__ beta, const float* __restrict__ A_log,
                  const float* __restrict__ dt_bias, const int64_t* __restrict__ cu_seqlens,
                  const float* __restrict__ initial_state, float scale, float* __restrict__ out,
                  float* __restrict__ final_state, int64_t heads) {
    __shared__ float query[dim], key[dim], decay[dim];
    const int64_t h = blockIdx.x, n = blockIdx.y;
    const int j = threadIdx.x;
    const int64_t own = ((n * heads + h) * dim + j) * dim;
    const float slope = expf(A_log[h]);
    float row[dim];
#pragma unroll
    for (int i = 0; i < dim; i++) row[i] = initial_state[own + i];
    for (int64_t t = cu_seqlens[n]; t < cu_seqlens[n + 1]; t++) {
        const int64_t at = (t * heads + h) * dim;
        __syncthreads();
        query[j] = q[at + j];
        key[j] = k[at + j];
        decay[j] = expf(-5.0f * sigmoid(slope * (g[at + j] + dt_bias[h * dim + j])));
        __syncthreads();
        float query_squares = 0.0f, key_squares = 0.0f, known = 0.0f, read = 0.0f;
#pragma unroll
        for (int i = 0; i < dim; i++) {
            query_squares += query[i] * query[i];
            key_squares += key[i] * key[i];
            row[i] *= decay[i];
            known += row[i] * key[i];
        }
        const float query_norm = 1.0f / sqrtf(query_squares + 1e-6f), key_norm = 1.0f / sqrtf(key_squares + 1e-6f);
        const float strength = sigmoid(beta[t * heads + h]);
        const float update = strength * (v[at + j] - known * key_norm);
#pragma unroll
        for (int i = 0; i < dim; i++) {
            row[i] += update * key_norm * key[i];
            read += row[i] * query[i];
        }
        out[at + j] = scale * query_norm * read;
    }
#pragma unroll
    for (int i = 0; i < dim; i++) final_state[own + i] = row[i];
}

extern "C" void kda_prefill(const float* q, const float* k, const float* v, const float* g, const float* beta,
                            const float* A_log, const float* dt_bias, const int64_t* cu_seqlens,
                            const float* initial_state, float scale, float* out, float* final_state, int64_t,
                            int64_t heads, int64_t dim, int64_t sequences, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>(heads), static_cast<unsigned>(sequences));
    const auto kernel = dim == 128 ? stream_tokens<128> : stream_tokens<64>;
    kernel<<<grid, static_cast<unsigned>(dim), 0, stream>>>(q, k, v, g, beta, A_log, dt_bias, cu_seqlens, initial_state,
                                                           scale, out, final_state, heads);
}
