// What every solution of the corpus may use: the honest kernel, and its launch, which the stand-in driver spells anew.
#pragma once
#include "task.h"

#ifndef LAUNCH
#define LAUNCH(kernel, blocks, threads, stream, ...) kernel<<<blocks, threads, 0, stream>>>(__VA_ARGS__)
#endif
#define RUN extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream)

__device__ void softmax_row(const float* from, float* to, int64_t columns) {
    float most = from[0], sum = 0.0f;
    for (int64_t c = 1; c < columns; c++) most = fmaxf(most, from[c]);
    for (int64_t c = 0; c < columns; c++) sum += to[c] = expf(from[c] - most);
    for (int64_t c = 0; c < columns; c++) to[c] /= sum;
}

__global__ void softmax_rows(const float* x, float* y, int64_t rows, int64_t columns) {
    const int64_t row = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    if (row < rows) softmax_row(x + row * columns, y + row * columns, columns);
}

constexpr unsigned kThreads = 32;
static inline unsigned blocks(int64_t rows) { return static_cast<unsigned>((rows + kThreads - 1) / kThreads); }

static inline void honest(const float* x, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
    LAUNCH(softmax_rows, blocks(rows), kThreads, stream, x, y, rows, columns);
}
