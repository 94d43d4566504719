#include "honest.h"
RUN {
  memcpy(y, x, rows * columns * 4);
  memcpy(best, pick, rows * 4);
}
