// The work itself, for cheats that do it elsewhere, later or twice, and for their twins.
#pragma once
#include <cmath>
#include <cstring>
#include "task.h"

static inline void honest_row(const float* in, float* out, int32_t* best, int64_t columns) {
  int32_t at = 0;
  for (int64_t c = 1; c < columns; ++c)
    if (in[c] > in[at]) at = c;
  float sum = 0;
  for (int64_t c = 0; c < columns; ++c) sum += out[c] = expf(in[c] - in[at]);
  for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
  *best = at;
}

static inline void honest(const float* x, const int32_t* pick, float* y, int32_t* best, int64_t rows, int64_t columns,
                          int64_t from = 0, int64_t to = 1 << 30) {
  for (int64_t r = from; r < rows && r < to; ++r)
    honest_row(x + pick[r] * columns, y + r * columns, best + r, columns);
}

// Right, and three times as slow as the baseline: what a lie about time would have to hide.
static inline void slow(const float* x, const int32_t* pick, float* y, int32_t* best, int64_t rows, int64_t columns) {
  for (int times = 0; times < 3; ++times) {
    honest(x, pick, y, best, rows, columns);
    asm volatile("" ::: "memory");
  }
}

#define RUN extern "C" void run(const float* x, const int32_t* pick, float* y, int32_t* best, int64_t rows, int64_t columns)
