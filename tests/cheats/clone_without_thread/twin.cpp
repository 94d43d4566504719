#include <thread>
#include "honest.h"
RUN {
  std::thread half([=] { honest(x, pick, y, best, rows, columns, 0, rows / 2); });
  honest(x, pick, y, best, rows, columns, rows / 2);
  half.join();
}
