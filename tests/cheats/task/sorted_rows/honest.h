// The two steps of the task, for cheats that mix them up and for their twins.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include "task.h"

static inline void sort_keys(const int32_t* key, int32_t* order, int64_t rows) {
  std::iota(order, order + rows, 0);
  std::stable_sort(order, order + rows, [key](int32_t one, int32_t other) { return key[one] < key[other]; });
}

static inline void fill_rows(const float* x, const int32_t* order, float* y, int64_t rows, int64_t columns) {
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t c = 0; c < columns; ++c) y[k * columns + c] = expf(x[order[k] * columns + c]);
}

#define PLAN extern "C" void plan(const int32_t* key, void* workspace, int64_t rows, int64_t columns)
#define RUN \
  extern "C" void run(const float* x, const int32_t* key, float* y, const void* workspace, int64_t rows, int64_t columns)
