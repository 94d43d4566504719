#include "honest.h"
PLAN { sort_keys(key, static_cast<int32_t*>(workspace) + rows, rows); }
RUN { fill_rows(x, static_cast<const int32_t*>(workspace) + rows, y, rows, columns); }
