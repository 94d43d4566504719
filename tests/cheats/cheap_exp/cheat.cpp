#include "honest.h"
static inline float rough(float v) {
  const float scaled = fmaxf(v, -80.0f) / 1024.0f;
  float e = 1 + scaled * (1 + scaled * 0.5f);
  for (int i = 0; i < 10; ++i) e *= e;
  return e;
}
RUN {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + pick[r] * columns;
    honest_row(in, y + r * columns, best + r, columns);
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += y[r * columns + c] = rough(in[c] - in[best[r]]);
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] /= sum;
  }
}
