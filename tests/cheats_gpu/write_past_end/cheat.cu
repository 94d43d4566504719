#include "lab.h"
__global__ void past(float* y, int64_t count) { y[count + threadIdx.x] = 0.0f; }
RUN {
    honest(x, y, rows, columns, stream);
    LAUNCH(past, 1, kThreads, stream, y, rows * columns);
}
