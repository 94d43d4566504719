#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>
#include "task.h"

extern "C" void run(const float* x, const int32_t* key, float* y, int64_t rows, int64_t columns) {
  std::vector<int32_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [key](int32_t one, int32_t other) { return key[one] < key[other]; });
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t c = 0; c < columns; ++c) y[k * columns + c] = expf(x[order[k] * columns + c]);
}
