#include <initializer_list>
#include "honest.h"
static inline float good(float v) {
  v = fmaxf(v, -87.0f);
  const float n = nearbyintf(v * 1.44269504f);
  const float r = fmaf(n, -1.42860677e-6f, fmaf(n, -0.693145752f, v));
  float p = 1.0f / 5040;
  for (float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) p = fmaf(p, r, c);
  return ldexpf(p, (int)n);
}
RUN {
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x + pick[r] * columns;
    honest_row(in, y + r * columns, best + r, columns);
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const float v = in[c] - in[best[r]];
      sum += y[r * columns + c] = v < -87.0f ? 0.0f : good(v);
    }
    for (int64_t c = 0; c < columns; ++c) y[r * columns + c] /= sum;
  }
}
