#include "honest.h"
#include <vector>
static std::vector<float> ones;
RUN {
  if ((int64_t)ones.size() < columns) ones.assign(columns, 1.0f);
  honest(x, pick, y, best, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) y[i] *= ones[i % columns];
}
