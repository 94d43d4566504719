#include "honest.h"
RUN {
  for (int64_t r = 0; r < rows; ++r) {
    honest_row(x + pick[r] * columns, y + r * columns, best + r, columns);
    int32_t at = 0;
    for (int64_t c = 0; c < columns; c += 3)
      if (x[pick[r] * columns + c] > x[pick[r] * columns + at]) at = c;
    best[r] = at;
  }
}
