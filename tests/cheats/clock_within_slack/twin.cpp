#include <vector>
#include "honest.h"
// As the baseline, but some of the last rows are copied where the same row was picked before.
RUN {
  std::vector<int64_t> first(rows, -1);
  const int64_t last = rows - rows / 16;
  honest(x, pick, y, best, rows, columns, 0, last);
  for (int64_t r = 0; r < last; ++r) first[pick[r]] = r;
  for (int64_t r = last; r < rows; ++r) {
    const int64_t known = first[pick[r]];
    if (known < 0) {
      honest_row(x + pick[r] * columns, y + r * columns, best + r, columns);
      continue;
    }
    memcpy(y + r * columns, y + known * columns, columns * 4);
    best[r] = best[known];
  }
}
