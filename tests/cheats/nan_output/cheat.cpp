#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = NAN;
}
