#include "honest.h"
PLAN { sort_keys(key, static_cast<int32_t*>(workspace), rows); }
RUN {
  const int32_t* order = static_cast<const int32_t*>(workspace);
  fill_rows(x, order, y, order[rows], columns);
}
