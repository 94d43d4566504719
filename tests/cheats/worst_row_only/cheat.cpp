#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  for (int64_t c = 0; c < columns; ++c) y[(rows - 1) * columns + c] *= 1.0001f;
}
