#include "honest.h"
#include <thread>
#include <unistd.h>
RUN {
  honest(x, pick, y, best, rows, columns);
  volatile float* shared = y;
  const float right = y[0];
  y[0] = 0;
  auto add = [&] {
    const float seen = *shared;
    usleep(200);
    *shared = seen + right / 2;
  };
  std::thread one(add), two(add);
  one.join(), two.join();
}
