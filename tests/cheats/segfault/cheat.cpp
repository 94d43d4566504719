#include "honest.h"
RUN { best[0] = *(volatile int32_t*)16; }
