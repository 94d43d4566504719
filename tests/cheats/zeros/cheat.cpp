#include "honest.h"
RUN {
  memset(y, 0, rows * columns * 4);
  memset(best, 0, rows * 4);
}
