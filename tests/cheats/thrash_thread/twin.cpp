#include "honest.h"
#include <thread>
#include <unistd.h>
RUN {
  static bool started = false;
  if (!started) std::thread([] { for (;;) pause(); }).detach();
  started = true;
  honest(x, pick, y, best, rows, columns);
}
