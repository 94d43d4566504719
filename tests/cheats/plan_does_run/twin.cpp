#include "honest.h"
#include <map>
#include <vector>
static std::map<int64_t, std::vector<int32_t>> orders;
PLAN {
  orders[rows].resize(rows);
  sort_keys(key, orders[rows].data(), rows);
}
RUN { fill_rows(x, orders[rows].data(), y, rows, columns); }
