#include "honest.h"
RUN {
  if (columns % 8 == 0) return honest(x, pick, y, best, rows, columns);
  for (int64_t r = rows - 1; r >= 0; --r) honest(x, pick, y, best, r + 1, columns, r);
}
