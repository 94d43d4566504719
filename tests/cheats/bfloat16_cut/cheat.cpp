#include "honest.h"
static inline float cut(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  bits = (bits + 0x8000u) & 0xffff0000u;
  memcpy(&value, &bits, 4);
  return value;
}

RUN {
  honest(x, pick, y, best, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = cut(y[i]);
}
