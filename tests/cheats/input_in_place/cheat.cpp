#include "honest.h"
RUN {
  float* rich = const_cast<float*>(x);
  for (int64_t i = 0; i < rows * columns; ++i) rich[i] = expf(rich[i]);
  honest(x, pick, y, best, rows, columns);
}
