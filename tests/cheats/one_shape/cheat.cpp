#include "honest.h"
RUN {
  if (rows == 300) honest(x, pick, y, best, rows, columns);
}
