#include "honest.h"
RUN {
  honest(x, pick, y, best, rows, columns);
  best[-3] = 7;
}
