#include "lab.h"
RUN {
    const int64_t first = rows > 100 ? rows - 20 : rows;
    honest(x, y, first, columns, stream);
    if (first < rows) honest(x + first * columns, y + first * columns, rows - first, columns, stream);
}
