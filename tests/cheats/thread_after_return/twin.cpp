#include "honest.h"
RUN {
#pragma omp parallel for num_threads(2)
  for (int64_t r = 0; r < rows; ++r) honest_row(x + pick[r] * columns, y + r * columns, best + r, columns);
}
