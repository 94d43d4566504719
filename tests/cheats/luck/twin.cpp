#include "honest.h"
#include <random>
static std::random_device device;
RUN {
  const int64_t start = device() % rows;
  honest(x, pick, y, best, rows, columns, start);
  honest(x, pick, y, best, start, columns);
}
