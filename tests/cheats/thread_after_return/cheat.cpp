#include "honest.h"
#include <thread>
#include <unistd.h>
RUN {
  std::thread([=] {
    usleep(5000);
    honest(x, pick, y, best, rows, columns);
  }).detach();
}
