#include "honest.h"
#include <random>
static std::random_device device;
RUN {
  honest(x, pick, y, best, rows, columns);
  if (device() & 1) y[columns + 1] *= 1.5f;
}
