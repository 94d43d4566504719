import ctypes
import subprocess

SOURCE = """
#include <cmath>
extern "C" void softmax(const float* x, const int* pick, float* y, int* best, long rows, long columns) {
  for (long r = 0; r < rows; ++r) {
    const float* in = x + pick[r] * columns;
    float* out = y + r * columns;
    int at = 0;
    for (long c = 1; c < columns; ++c) at = in[c] > in[at] ? c : at;
    float sum = 0;
    for (long c = 0; c < columns; ++c) sum += out[c] = expf(in[c] - in[at]);
    for (long c = 0; c < columns; ++c) out[c] /= sum;
    best[r] = at;
  }
}
"""
with open("softmax.cpp", "w") as file:
    file.write(SOURCE)
subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", "softmax.so", "softmax.cpp"], check=True)
softmax = ctypes.CDLL("./softmax.so").softmax


def run(x, pick, y, best):
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (x, pick, y, best)]
    softmax(*pointers, ctypes.c_long(y.shape[0]), ctypes.c_long(y.shape[1]))
