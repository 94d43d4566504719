#include "honest.h"
static int calls = 0;
RUN {
  if (++calls <= 9) honest(x, pick, y, best, rows, columns);
}
