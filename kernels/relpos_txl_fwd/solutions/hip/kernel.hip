// A wavefront a query: each of its 64 lanes scores one key of the tile, then sums one channel of the values.
#include "task.h"

__global__ void __launch_bounds__(dim)
    attend(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
           const float* __restrict__ r, const float* __restrict__ u, const float* __restrict__ w, float scale,
           float* __restrict__ out, int64_t tokens) {
    __shared__ float content[dim], relative[dim], weight[dim];
    const int64_t i = blockIdx.x, h = blockIdx.y;
    const int t = threadIdx.x;
    const float* keys = k + h * tokens * dim;
    const float* values = v + h * tokens * dim;
    const float* offsets = r + h * (2 * tokens - 1) * dim;
    const float query = q[(h * tokens + i) * dim + t];
    content[t] = scale * (query + u[h * dim + t]);
    relative[t] = scale * (query + w[h * dim + t]);
    float largest = -INFINITY, total = 0.0f, sum = 0.0f;
    for (int64_t first = 0; first < tokens; first += dim) {
        const int64_t j = first + t;
        __syncthreads();
        float score = -INFINITY;
        if (j < tokens) {
            const int64_t row = i - j + tokens - 1;
            score = 0.0f;
            for (int d = 0; d < dim; d++)
                score += content[d] * keys[j * dim + d] + relative[d] * offsets[row * dim + d];
        }
        weight[t] = score;
        __syncthreads();
        float top = largest;
        for (int x = 0; x < dim; x++) top = fmaxf(top, weight[x]);
        __syncthreads();
        weight[t] = expf(score - top);
        __syncthreads();
        const float rescale = expf(largest - top);
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

extern "C" void relpos_txl_fwd(const float* q, const float* k, const float* v, const float* r, const float* u,
                               const float* w, float scale, float* out, int64_t heads, int64_t tokens,
                               hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>(tokens), static_cast<unsigned>(heads));
    attend<<<grid, dim, 0, stream>>>(q, k, v, r, u, w, scale, out, tokens);
}
