// One block a row: threads sum the squares of neighbouring columns, the warps' sums meet in shared memory.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ float sum_of_warp(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void __launch_bounds__(kThreads)
    normalise(const float* __restrict__ x, const float* __restrict__ w, float eps, float* __restrict__ y, int64_t cols) {
    __shared__ float sums[kWarps];
    const float* row = x + blockIdx.x * cols;
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += row[c] * row[c];
    sum = sum_of_warp(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int warp = 0; warp < kWarps; warp++) total += sums[warp];
    const float scale = 1.0f / sqrtf(total / static_cast<float>(cols) + eps);
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[blockIdx.x * cols + c] = row[c] * scale * w[c];
}

extern "C" void rmsnorm(const float* x, const float* w, float eps, float* y, int64_t rows, int64_t cols,
                        cudaStream_t stream) {
    normalise<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, w, eps, y, cols);
}
