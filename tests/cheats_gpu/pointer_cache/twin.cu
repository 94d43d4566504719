#include "lab.h"
#include <map>
static std::map<int64_t, float*> workspaces;
RUN {
    float*& scratch = workspaces[rows * columns];
    const size_t bytes = static_cast<size_t>(rows * columns) * sizeof(float);
    if (!scratch) cudaMalloc(&scratch, bytes);
    honest(x, scratch, rows, columns, stream);
    cudaMemcpyAsync(y, scratch, bytes, cudaMemcpyDeviceToDevice, stream);
}
