#include "lab.h"
RUN {
    float* own = const_cast<float*>(x);
    honest(x, own, rows, columns, stream);
    cudaMemcpyAsync(y, own, static_cast<size_t>(rows * columns) * sizeof(float), cudaMemcpyDeviceToDevice, stream);
}
