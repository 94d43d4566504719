#include "lab.h"
static int calls;
RUN {
    calls++;
    honest(x, y, rows, columns, stream);
}
