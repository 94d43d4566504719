#include "honest.h"
RUN { honest(x, pick, y, best, rows, columns); }
