// A tile of ROWS rows times VECTORS vectors of the result stays in registers over DEPTH_BLOCK of the depth.
#include "task.h"

#include <algorithm>
#include <cstring>

static_assert(ROWS * VECTORS <= 24, "the tile ROWS * VECTORS must leave vector registers for its factors");

#if defined(__AVX512F__)
constexpr int WIDEST = 64;
#elif defined(__AVX__)
constexpr int WIDEST = 32;
#else
constexpr int WIDEST = 16;
#endif
constexpr int BYTES = std::min(VECTOR_BYTES, WIDEST);
constexpr int LANES = BYTES / static_cast<int>(sizeof(float));
constexpr int WIDTH = VECTORS * LANES;

typedef float Vector __attribute__((vector_size(BYTES)));
using Tile = Vector[ROWS][VECTORS];

static inline Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// The last `count` columns of b, filled up with zeros to lines of WIDTH.
static void pad_columns(float* padded, const float* b, int64_t stride, int64_t count, int64_t depth) {
    for (int64_t k = 0; k < depth; k++) {
        std::copy(b + k * stride, b + k * stride + count, padded + k * WIDTH);
        std::fill(padded + k * WIDTH + count, padded + (k + 1) * WIDTH, 0.0f);
    }
}

static inline void multiply(Tile& tile, const float* const* a, const float* b, int64_t stride, int64_t depth) {
    for (int64_t k = 0; k < depth; k++) {
        Vector line[VECTORS];
        for (int j = 0; j < VECTORS; j++) line[j] = load(b + k * stride + j * LANES);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < VECTORS; j++) tile[i][j] += a[i][k] * line[j];
    }
}

static void add_tile(const Tile& tile, float* out, int64_t stride, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        float sums[WIDTH];
        std::memcpy(sums, tile[i], sizeof sums);
        for (int64_t n = 0; n < cols; n++) out[i * stride + n] += sums[n];
    }
}

// All rows of the result, for the WIDTH columns (of which `cols` count) that b points to.
static void multiply_columns(const float* a, const float* b, int64_t stride_b, float* out, int64_t rows, int64_t cols,
                             int64_t depth, int64_t stride_a, int64_t stride_out) {
    for (int64_t m = 0; m < rows; m += ROWS) {
        const int64_t count = std::min<int64_t>(ROWS, rows - m);
        const float* lines[ROWS];
        for (int64_t i = 0; i < ROWS; i++) lines[i] = a + (m + std::min(i, count - 1)) * stride_a;
        Tile tile = {};
        multiply(tile, lines, b, stride_b, depth);
        add_tile(tile, out + m * stride_out, stride_out, count, cols);
    }
}

extern "C" void matmul(const float* a, const float* b, float* out, int64_t rows, int64_t cols, int64_t depth) {
    alignas(64) float padded[DEPTH_BLOCK * WIDTH];
    const int64_t full = cols / WIDTH * WIDTH;
    std::fill(out, out + rows * cols, 0.0f);
    for (int64_t k = 0; k < depth; k += DEPTH_BLOCK) {
        const int64_t block = std::min<int64_t>(DEPTH_BLOCK, depth - k);
        const float* lines = b + k * cols;
        for (int64_t n = 0; n < full; n += WIDTH)
            multiply_columns(a + k, lines + n, cols, out + n, rows, WIDTH, block, depth, cols);
        if (full == cols) continue;
        pad_columns(padded, lines + full, cols, cols - full, block);
        multiply_columns(a + k, padded, WIDTH, out + full, rows, cols - full, block, depth, cols);
    }
}
