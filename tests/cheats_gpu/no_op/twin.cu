#include "lab.h"
__global__ void nothing(float*) {}
RUN {
    LAUNCH(nothing, 1, 1, stream, y);
    honest(x, y, rows, columns, stream);
}
