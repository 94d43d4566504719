#include "honest.h"
#include <vector>
RUN {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + pick[r] * columns;
    honest_row(in, y + r * columns, best + r, columns);
    double sum = 0;
    for (int64_t c = columns - 1; c >= 0; --c) sum += exp((double)in[c] - in[best[r]]);
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = exp((double)in[c] - in[best[r]]) / sum;
  }
}
