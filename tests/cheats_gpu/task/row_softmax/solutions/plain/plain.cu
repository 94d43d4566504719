#include "lab.h"
RUN { honest(x, y, rows, columns, stream); }
