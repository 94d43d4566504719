#include "honest.h"
PLAN { sort_keys(key, static_cast<int32_t*>(workspace), rows); }
RUN {
  for (int64_t from = 0; from < rows; from += 8) {
    int32_t order[8];
    memcpy(order, static_cast<const int32_t*>(workspace) + from, sizeof order);
    fill_rows(x, order, y + from * columns, std::min<int64_t>(8, rows - from), columns);
  }
}
