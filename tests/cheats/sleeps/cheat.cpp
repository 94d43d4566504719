#include "honest.h"
#include <unistd.h>
RUN {
  honest(x, pick, y, best, rows, columns);
  usleep(4000);
}
