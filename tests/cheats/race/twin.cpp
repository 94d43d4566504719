#include "honest.h"
#include <thread>
RUN {
  std::thread half([&] { honest(x, pick, y, best, rows, columns, rows / 2); });
  honest(x, pick, y, best, rows / 2, columns);
  half.join();
}
