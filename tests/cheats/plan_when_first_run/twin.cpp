#include "honest.h"
#include <vector>
PLAN {}
RUN {
  std::vector<int32_t> order(rows);
  sort_keys(key, order.data(), rows);
  fill_rows(x, order.data(), y, rows, columns);
}
