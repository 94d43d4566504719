#include "honest.h"
#include <vector>
RUN {
  std::vector<float> moved(columns);
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + pick[r] * columns;
    for (int64_t c = 0; c < columns; ++c) moved[c] = in[c] * 1.0f;
    honest_row(moved.data(), y + r * columns, best + r, columns);
  }
}
