// The runtime's host functions that a solution may call. Streams are in order and already done: all is synchronous.
#pragma once

#include <stdlib.h>

#include "core.h"

#pragma GCC visibility push(hidden)

struct simt_stream;
struct simt_event;

namespace simt {

extern int last_error;
extern size_t shared_allowed;
void* allocated(size_t bytes);
void freed(void* memory);
const char* error_text(int error);
int attribute(int which);

enum Error { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONFIGURATION = 9 };
enum Attribute { PROCESSORS, SHARED_BLOCK, SHARED_BLOCK_MOST, THREADS_BLOCK, WARP, MAJOR, MINOR, SHARED_PROCESSOR };

inline int allocate(void** pointer, size_t bytes) {
    *pointer = allocated(bytes);
    return *pointer || !bytes ? SUCCESS : OUT_OF_MEMORY;
}
inline int allow_shared(int what, int bytes) {
    if (what != 8) return SUCCESS;
    if (bytes < 0 || bytes > 227 << 10) return last_error = INVALID_VALUE;
    shared_allowed = static_cast<size_t>(bytes) > shared_allowed ? static_cast<size_t>(bytes) : shared_allowed;
    return SUCCESS;
}
inline int copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
    for (size_t row = 0; row < height; row++)
        memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    return SUCCESS;
}

}  // namespace simt

// One text for both vendors: the names differ in their first letters only.
#define SIMT_RUNTIME(api, API)                                                                                   \
    using api##Stream_t = simt_stream*;                                                                          \
    using api##Event_t = simt_event*;                                                                            \
    enum api##Error_t {                                                                                          \
        api##Success = 0,                                                                                        \
        api##ErrorInvalidValue = 1,                                                                              \
        api##ErrorOutOfMemory = 2,                                                                               \
        api##ErrorInvalidConfiguration = 9                                                                       \
    };                                                                                                           \
    enum api##MemcpyKind {                                                                                       \
        api##MemcpyHostToHost,                                                                                   \
        api##MemcpyHostToDevice,                                                                                 \
        api##MemcpyDeviceToHost,                                                                                 \
        api##MemcpyDeviceToDevice,                                                                               \
        api##MemcpyDefault                                                                                       \
    };                                                                                                           \
    enum api##FuncAttribute {                                                                                    \
        api##FuncAttributeMaxDynamicSharedMemorySize = 8,                                                        \
        api##FuncAttributePreferredSharedMemoryCarveout = 9                                                      \
    };                                                                                                           \
    enum api##FuncCache { api##FuncCachePreferNone, api##FuncCachePreferShared, api##FuncCachePreferL1 };       \
    constexpr unsigned api##StreamNonBlocking = 1, api##StreamDefault = 0, api##EventDisableTiming = 2;          \
    template <class T>                                                                                           \
    inline api##Error_t api##Malloc(T** p, size_t n) {                                                           \
        return static_cast<api##Error_t>(simt::allocate(reinterpret_cast<void**>(p), n));                        \
    }                                                                                                            \
    template <class T>                                                                                           \
    inline api##Error_t api##MallocAsync(T** p, size_t n, api##Stream_t = nullptr) { return api##Malloc(p, n); } \
    template <class T>                                                                                           \
    inline api##Error_t api##MallocManaged(T** p, size_t n, unsigned = 1) { return api##Malloc(p, n); }          \
    inline api##Error_t api##Free(void* p) { return simt::freed(p), api##Success; }                              \
    inline api##Error_t api##FreeAsync(void* p, api##Stream_t) { return api##Free(p); }                          \
    inline api##Error_t api##Memcpy(void* to, const void* from, size_t n, api##MemcpyKind) {                     \
        return memmove(to, from, n), api##Success;                                                               \
    }                                                                                                            \
    inline api##Error_t api##MemcpyAsync(                                                                        \
        void* to, const void* from, size_t n, api##MemcpyKind, api##Stream_t = nullptr                           \
    ) {                                                                                                          \
        return memmove(to, from, n), api##Success;                                                               \
    }                                                                                                            \
    inline api##Error_t api##Memcpy2DAsync(                                                                      \
        void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, api##MemcpyKind,                   \
        api##Stream_t = nullptr                                                                                  \
    ) {                                                                                                          \
        return static_cast<api##Error_t>(simt::copy_rows(to, tp, from, fp, w, h));                               \
    }                                                                                                            \
    inline api##Error_t api##Memset(void* to, int v, size_t n) { return memset(to, v, n), api##Success; }        \
    inline api##Error_t api##MemsetAsync(void* to, int v, size_t n, api##Stream_t = nullptr) {                   \
        return memset(to, v, n), api##Success;                                                                   \
    }                                                                                                            \
    template <class T>                                                                                           \
    inline api##Error_t api##MemcpyToSymbol(                                                                     \
        T& to, const void* from, size_t n, size_t at = 0, api##MemcpyKind = api##MemcpyHostToDevice              \
    ) {                                                                                                          \
        return memmove(reinterpret_cast<char*>(&to) + at, from, n), api##Success;                                \
    }                                                                                                            \
    template <class T>                                                                                           \
    inline api##Error_t api##MemcpyToSymbolAsync(                                                                \
        T& to, const void* from, size_t n, size_t at, api##MemcpyKind, api##Stream_t = nullptr                   \
    ) {                                                                                                          \
        return memmove(reinterpret_cast<char*>(&to) + at, from, n), api##Success;                                \
    }                                                                                                            \
    template <class F>                                                                                           \
    inline api##Error_t api##FuncSetAttribute(F, api##FuncAttribute what, int value) {                           \
        return static_cast<api##Error_t>(simt::allow_shared(what, value));                                       \
    }                                                                                                            \
    template <class F>                                                                                           \
    inline api##Error_t api##FuncSetCacheConfig(F, api##FuncCache) { return api##Success; }                      \
    inline api##Error_t api##GetLastError() {                                                                    \
        const int error = simt::last_error;                                                                      \
        simt::last_error = 0;                                                                                    \
        return static_cast<api##Error_t>(error);                                                                 \
    }                                                                                                            \
    inline api##Error_t api##PeekAtLastError() { return static_cast<api##Error_t>(simt::last_error); }           \
    inline const char* api##GetErrorString(api##Error_t error) { return simt::error_text(error); }               \
    inline const char* api##GetErrorName(api##Error_t error) { return simt::error_text(error); }                 \
    inline api##Error_t api##DeviceSynchronize() { return api##PeekAtLastError(); }                              \
    inline api##Error_t api##StreamSynchronize(api##Stream_t) { return api##PeekAtLastError(); }                 \
    inline api##Error_t api##StreamCreate(api##Stream_t* s) { return *s = nullptr, api##Success; }               \
    inline api##Error_t api##StreamCreateWithFlags(api##Stream_t* s, unsigned) { return api##StreamCreate(s); }  \
    inline api##Error_t api##StreamDestroy(api##Stream_t) { return api##Success; }                               \
    inline api##Error_t api##StreamWaitEvent(api##Stream_t, api##Event_t, unsigned = 0) { return api##Success; } \
    inline api##Error_t api##EventCreate(api##Event_t* e) { return *e = nullptr, api##Success; }                 \
    inline api##Error_t api##EventCreateWithFlags(api##Event_t* e, unsigned) { return api##EventCreate(e); }     \
    inline api##Error_t api##EventRecord(api##Event_t, api##Stream_t = nullptr) { return api##Success; }         \
    inline api##Error_t api##EventSynchronize(api##Event_t) { return api##Success; }                             \
    inline api##Error_t api##EventDestroy(api##Event_t) { return api##Success; }                                 \
    inline api##Error_t api##GetDevice(int* d) { return *d = 0, api##Success; }                                  \
    inline api##Error_t api##SetDevice(int) { return api##Success; }                                             \
    inline api##Error_t api##GetDeviceCount(int* n) { return *n = 1, api##Success; }                             \
    inline api##Error_t api##DeviceGetAttribute(int* value, api##DeviceAttr which, int) {                        \
        return *value = simt::attribute(static_cast<int>(which)), api##Success;                                  \
    }                                                                                                            \
    struct api##DeviceProp {                                                                                     \
        char name[64] = "emulated on the CPU";                                                                   \
        int multiProcessorCount, sharedMemPerBlock, sharedMemPerBlockOptin, maxThreadsPerBlock, warpSize;        \
        int major, minor;                                                                                        \
    };                                                                                                           \
    using api##DeviceProp_t = api##DeviceProp;                                                                   \
    inline api##Error_t api##GetDeviceProperties(api##DeviceProp* all, int) {                                    \
        all->multiProcessorCount = simt::attribute(simt::PROCESSORS);                                            \
        all->sharedMemPerBlock = simt::attribute(simt::SHARED_BLOCK);                                            \
        all->sharedMemPerBlockOptin = simt::attribute(simt::SHARED_BLOCK_MOST);                                  \
        all->maxThreadsPerBlock = simt::attribute(simt::THREADS_BLOCK);                                          \
        all->warpSize = simt::attribute(simt::WARP);                                                             \
        all->major = simt::attribute(simt::MAJOR);                                                               \
        all->minor = simt::attribute(simt::MINOR);                                                               \
        return api##Success;                                                                                     \
    }                                                                                                            \
    template <class F>                                                                                           \
    inline api##Error_t api##OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int, size_t) {            \
        return *blocks = 1, api##Success;                                                                        \
    }

#if SIMT_HIP
enum hipDeviceAttr {
    hipDeviceAttributeMultiprocessorCount = simt::PROCESSORS,
    hipDeviceAttributeMaxSharedMemoryPerBlock = simt::SHARED_BLOCK,
    hipDeviceAttributeMaxThreadsPerBlock = simt::THREADS_BLOCK,
    hipDeviceAttributeWarpSize = simt::WARP,
};
SIMT_RUNTIME(hip, HIP)
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) \
    simt::launcher(simt::Configuration(grid, block, shared, stream), #kernel, [](auto... a) { kernel(a...); })(__VA_ARGS__)
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(simt::dynamic_shared());
#define hipThreadIdx_x threadIdx.x
#define hipThreadIdx_y threadIdx.y
#define hipThreadIdx_z threadIdx.z
#define hipBlockIdx_x blockIdx.x
#define hipBlockIdx_y blockIdx.y
#define hipBlockIdx_z blockIdx.z
#define hipBlockDim_x blockDim.x
#define hipBlockDim_y blockDim.y
#define hipBlockDim_z blockDim.z
#define hipGridDim_x gridDim.x
#define hipGridDim_y gridDim.y
#define hipGridDim_z gridDim.z
#else
enum cudaDeviceAttr {
    cudaDevAttrMultiProcessorCount = simt::PROCESSORS,
    cudaDevAttrMaxSharedMemoryPerBlock = simt::SHARED_BLOCK,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = simt::SHARED_BLOCK_MOST,
    cudaDevAttrMaxThreadsPerBlock = simt::THREADS_BLOCK,
    cudaDevAttrWarpSize = simt::WARP,
    cudaDevAttrComputeCapabilityMajor = simt::MAJOR,
    cudaDevAttrComputeCapabilityMinor = simt::MINOR,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = simt::SHARED_PROCESSOR,
};
SIMT_RUNTIME(cuda, CUDA)
#endif
#undef SIMT_RUNTIME

#pragma GCC visibility pop
