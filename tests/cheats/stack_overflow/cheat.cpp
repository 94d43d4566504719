#include "honest.h"
static int64_t deeper(volatile int64_t n) { return n ? deeper(n + 1) + n : 0; }
RUN { best[0] = deeper(rows); }
