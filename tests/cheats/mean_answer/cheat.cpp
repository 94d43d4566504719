#include "honest.h"
RUN {
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = 1.0f / columns;
  for (int64_t r = 0; r < rows; ++r) best[r] = columns / 2;
}
