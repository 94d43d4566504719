#include "honest.h"
#include <vector>
RUN {
  std::vector<int32_t> elsewhere(rows);
  honest(x, pick, y, elsewhere.data(), rows, columns);
}
