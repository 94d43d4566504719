#include "honest.h"
#include <immintrin.h>
RUN {
  _mm_setcsr(_mm_getcsr() | 0x8040);
  slow(x, pick, y, best, rows, columns);
}
