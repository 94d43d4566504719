#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  y[rows * columns - 1] *= 1.0f;
}
