// What the host functions need of one place: allocations, errors in words, the device's figures.
#include "host.h"

namespace simt {

#if !SIMT_CHECK
void* allocated(size_t bytes) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes)) return nullptr;
    return memset(memory, 0xff, bytes);  // as unset as it is on a device
}
void freed(void* memory) { free(memory); }
#endif

const char* error_text(int error) {
    switch (error) {
        case SUCCESS: return "no error";
        case INVALID_VALUE: return "invalid argument";
        case OUT_OF_MEMORY: return "out of memory";
        default: return "invalid configuration argument";
    }
}

int attribute(int which) {
    switch (which) {
        case PROCESSORS: return 4;
        case SHARED_BLOCK: return (SIMT_HIP ? 64 : 48) << 10;
        case SHARED_BLOCK_MOST: return 227 << 10;
        case THREADS_BLOCK: return 1024;
        case WARP: return SIMT_WARP;
        case MAJOR: return 9;
        case MINOR: return 0;
        default: return 228 << 10;
    }
}

}  // namespace simt
