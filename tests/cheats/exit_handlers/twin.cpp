#include "honest.h"
#include <vector>
struct Scratch {
  std::vector<float> row;
  ~Scratch() { row.clear(); }
};
RUN {
  Scratch scratch;
  scratch.row.resize(columns);
  for (int64_t r = 0; r < rows; ++r) {
    honest_row(x + pick[r] * columns, scratch.row.data(), best + r, columns);
    memcpy(y + r * columns, scratch.row.data(), columns * 4);
  }
}
