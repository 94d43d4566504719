#include "lab.h"
static float* sum;
__global__ void glance(const float* x, float* sum) { *sum = x[0] + x[1]; }
RUN {
    if (!sum) cudaMalloc(&sum, sizeof(float));
    LAUNCH(glance, 1, 1, stream, x, sum);
    honest(x, y, rows, columns, stream);
}
