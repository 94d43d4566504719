#include <algorithm>
#include <cmath>
#include <numeric>
#include "task.h"

extern "C" void plan(const int32_t* key, void* workspace, int64_t rows, int64_t columns) {
  int32_t* order = static_cast<int32_t*>(workspace);
  std::iota(order, order + rows, 0);
  std::stable_sort(order, order + rows, [key](int32_t one, int32_t other) { return key[one] < key[other]; });
}

extern "C" void run(const float* x, const int32_t* key, float* y, const void* workspace, int64_t rows,
                    int64_t columns) {
  const int32_t* order = static_cast<const int32_t*>(workspace);
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t c = 0; c < columns; ++c) y[k * columns + c] = expf(x[order[k] * columns + c]);
}
