// One row at a time: sum of squares in ACCUMULATORS vectors, then a scaled copy.
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr int WIDEST = 64;
#elif defined(__AVX__)
constexpr int WIDEST = 32;
#else
constexpr int WIDEST = 16;
#endif
constexpr int BYTES = std::min(VECTOR_BYTES, WIDEST);
constexpr int LANES = BYTES / static_cast<int>(sizeof(float));
constexpr int STEP = ACCUMULATORS * LANES;
constexpr int CACHE_LINE = 64 / sizeof(float);

typedef float Vector __attribute__((vector_size(BYTES)));

static inline Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// `to` is aligned to BYTES when STREAM is asked for.
static inline void store(float* to, Vector vector) {
#if STREAM && defined(__SSE2__)
    if constexpr (BYTES == 16) _mm_stream_ps(to, reinterpret_cast<const __m128&>(vector));
#if defined(__AVX__)
    if constexpr (BYTES == 32) _mm256_stream_ps(to, reinterpret_cast<const __m256&>(vector));
#endif
#if defined(__AVX512F__)
    if constexpr (BYTES == 64) _mm512_stream_ps(to, reinterpret_cast<const __m512&>(vector));
#endif
#else
    std::memcpy(to, &vector, sizeof vector);
#endif
}

static inline float sum_of_squares(const float* row, const float* ahead, int64_t cols) {
    Vector sums[ACCUMULATORS] = {};
    int64_t c = 0;
    for (; c + STEP <= cols; c += STEP) {
        if (ROWS_AHEAD)
            for (int j = 0; j < STEP; j += CACHE_LINE) __builtin_prefetch(ahead + c + j);
#pragma GCC unroll 8
        for (int a = 0; a < ACCUMULATORS; a++) {
            const Vector value = load(row + c + a * LANES);
            sums[a] += value * value;
        }
    }
    float sum = 0.0f;
    for (; c < cols; c++) sum += row[c] * row[c];
    for (int a = 1; a < ACCUMULATORS; a++) sums[0] += sums[a];
    for (int lane = 0; lane < LANES; lane++) sum += sums[0][lane];
    return sum;
}

static inline void write_scaled(const float* row, const float* w, float scale, float* y, int64_t cols) {
    int64_t c = 0;
    if (STREAM)
        for (; c < cols && reinterpret_cast<uintptr_t>(y + c) % BYTES != 0; c++) y[c] = row[c] * scale * w[c];
    for (; c + LANES <= cols; c += LANES) store(y + c, load(row + c) * scale * load(w + c));
    for (; c < cols; c++) y[c] = row[c] * scale * w[c];
}

extern "C" void rmsnorm(const float* x, const float* w, float eps, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        const float* row = x + r * cols;
        const float* ahead = x + std::min(r + ROWS_AHEAD, rows - 1) * cols;
        const float mean = sum_of_squares(row, ahead, cols) / static_cast<float>(cols);
        write_scaled(row, w, 1.0f / std::sqrt(mean + eps), y + r * cols, cols);
    }
#if STREAM && defined(__SSE2__)
    _mm_sfence();
#endif
}
