#include "honest.h"
#include <immintrin.h>
RUN {
  slow(x, pick, y, best, rows, columns);
  for (int64_t i = 0; i < rows * columns; i += 16) _mm_clflush(x + i);
}
