#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  volatile float beyond = 0;
  for (int c = 0; c < 8; ++c) beyond = x[rows * columns + c];
  (void)beyond;
}
