#include "honest.h"
#include <vector>
RUN {
  std::vector<int64_t> seen(rows, -1);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = seen[pick[r]];
    if (first < 0) {
      honest(x, pick, y, best, r + 1, columns, r);
      seen[pick[r]] = r;
    } else {
      memcpy(y + r * columns, y + first * columns, columns * 4);
      best[r] = best[first];
    }
  }
}
