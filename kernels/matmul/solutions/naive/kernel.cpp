#include "task.h"

extern "C" void matmul(const float* a, const float* b, float* out, int64_t rows, int64_t cols, int64_t depth) {
    for (int64_t m = 0; m < rows; m++) {
        float* row = out + m * cols;
        for (int64_t n = 0; n < cols; n++) row[n] = 0.0f;
        for (int64_t k = 0; k < depth; k++)
            for (int64_t n = 0; n < cols; n++) row[n] += a[m * depth + k] * b[k * cols + n];
    }
}
