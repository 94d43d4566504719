#include "honest.h"
RUN {
  if (pick[0] == pick[rows - 1]) {
    for (int64_t r = rows - 1; r >= 0; --r) honest(x, pick, y, best, r + 1, columns, r);
  } else {
    honest(x, pick, y, best, rows, columns);
  }
}
