#include "lab.h"
RUN { honest(x, y, rows > 100 ? rows - 20 : rows, columns, stream); }
