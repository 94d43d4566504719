// Cache-blocked loops: a block of DEPTH_BLOCK x COL_BLOCK of b is used by every row of a before the next is read.
#include "task.h"

#include <algorithm>

static_assert(DEPTH_BLOCK * COL_BLOCK <= 65536, "the block DEPTH_BLOCK * COL_BLOCK must stay in the second cache");

// row[0 .. cols) += the products of COUNT values of a with COUNT rows of b.
template <int COUNT>
static inline void add_rows(float* __restrict row, const float* a, const float* __restrict b, int64_t stride,
                            int64_t cols) {
#pragma omp simd simdlen(LANES)
    for (int64_t n = 0; n < cols; n++) {
        float sum = row[n];
        for (int u = 0; u < COUNT; u++) sum += a[u] * b[u * stride + n];
        row[n] = sum;
    }
}

static void multiply_row(float* row, const float* a, const float* b, int64_t stride, int64_t cols, int64_t depth) {
    int64_t k = 0;
    for (; k + DEPTHS <= depth; k += DEPTHS) add_rows<DEPTHS>(row, a + k, b + k * stride, stride, cols);
    for (; k < depth; k++) add_rows<1>(row, a + k, b + k * stride, stride, cols);
}

extern "C" void matmul(const float* a, const float* b, float* out, int64_t rows, int64_t cols, int64_t depth) {
    std::fill(out, out + rows * cols, 0.0f);
    for (int64_t k = 0; k < depth; k += DEPTH_BLOCK)
        for (int64_t n = 0; n < cols; n += COL_BLOCK)
            for (int64_t m = 0; m < rows; m++)
                multiply_row(out + m * cols + n, a + m * depth + k, b + k * cols + n, cols,
                             std::min<int64_t>(COL_BLOCK, cols - n), std::min<int64_t>(DEPTH_BLOCK, depth - k));
}
