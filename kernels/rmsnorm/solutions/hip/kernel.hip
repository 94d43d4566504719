// One workgroup a row: work items sum the squares of neighbouring columns, the wavefronts' sums meet in LDS.
#include "task.h"

constexpr int kThreads = 256;
constexpr int kWave = 64;
constexpr int kWaves = kThreads / kWave;

__device__ float sum_of_wave(float value) {
    for (int offset = kWave / 2; offset > 0; offset /= 2) value += __shfl_down(value, offset);
    return value;
}

__global__ void __launch_bounds__(kThreads)
    normalise(const float* __restrict__ x, const float* __restrict__ w, float eps, float* __restrict__ y, int64_t cols) {
    __shared__ float sums[kWaves];
    const float* row = x + blockIdx.x * cols;
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) sum += row[c] * row[c];
    sum = sum_of_wave(sum);
    if (threadIdx.x % kWave == 0) sums[threadIdx.x / kWave] = sum;
    __syncthreads();
    float total = 0.0f;
    for (int wave = 0; wave < kWaves; wave++) total += sums[wave];
    const float scale = 1.0f / sqrtf(total / static_cast<float>(cols) + eps);
    for (int64_t c = threadIdx.x; c < cols; c += kThreads) y[blockIdx.x * cols + c] = row[c] * scale * w[c];
}

extern "C" void rmsnorm(const float* x, const float* w, float eps, float* y, int64_t rows, int64_t cols,
                        hipStream_t stream) {
    normalise<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, w, eps, y, cols);
}
