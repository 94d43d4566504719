#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  float beyond = 0;
  for (int c = 0; c < 8; ++c) beyond += x[rows * columns + c];
  y[0] += beyond * 1e-3f;
}
