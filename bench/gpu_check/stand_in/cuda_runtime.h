// What the corpus' CUDA sources need of the runtime, on the stand-in driver: kernels run thread by thread on the host,
// later, on the thread of their stream. No barriers, no shared memory: only for kernels whose threads are alone.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

extern "C" {
int cuMemAlloc_v2(void**, size_t);
int cuMemFree_v2(void*);
int cuMemcpyDtoDAsync_v2(void*, const void*, size_t, void*);
int cuMemcpyDtoH_v2(void*, const void*, size_t);
int cuMemcpyHtoD_v2(void*, const void*, size_t);
int cuMemsetD8Async(void*, unsigned char, size_t, void*);
int cuStreamCreate(void**, unsigned);
int cuStreamSynchronize(void*);
int cuStreamWaitEvent(void*, void*, unsigned);
int cuLaunchHostFunc(void*, void (*)(void*), void*);
int cuEventCreate(void**, unsigned);
int cuEventRecord(void*, void*);
int cuEventElapsedTime(float*, void*, void*);
int cuEventSynchronize(void*);
int cuCtxSynchronize();
}

#define __global__ static
#define __device__ static inline
#define __restrict__

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
inline thread_local dim3 blockIdx, threadIdx, blockDim, gridDim;

using cudaError_t = int;
using cudaStream_t = struct kernel_lab_stream*;
using cudaEvent_t = struct kernel_lab_event*;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t count) {
    return cuMemAlloc_v2(reinterpret_cast<void**>(pointer), count);
}
inline cudaError_t cudaFree(void* pointer) { return cuMemFree_v2(pointer); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t count, cudaMemcpyKind, cudaStream_t stream) {
    return cuMemcpyDtoDAsync_v2(to, from, count, stream);
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t count, cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost ? cuMemcpyDtoH_v2(to, from, count) : cuMemcpyHtoD_v2(to, from, count);
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t count, cudaStream_t stream) {
    return cuMemsetD8Async(to, static_cast<unsigned char>(byte), count, stream);
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    return cuStreamCreate(reinterpret_cast<void**>(stream), flags);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return cuStreamSynchronize(stream); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return cuStreamWaitEvent(stream, event, flags);
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
    return cuEventCreate(reinterpret_cast<void**>(event), flags);
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) { return cuEventRecord(event, stream); }
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) { return cuEventSynchronize(event); }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t one, cudaEvent_t other) {
    return cuEventElapsedTime(ms, one, other);
}
inline cudaError_t cudaDeviceSynchronize() { return cuCtxSynchronize(); }
inline cudaError_t cudaGetLastError() { return 0; }

// A graph may run it again, so what a launch holds is never freed.
inline void kernel_lab_launch(unsigned blocks, unsigned threads, cudaStream_t stream, std::function<void()> thread) {
    auto* all = new std::function<void()>([=] {
        gridDim.x = blocks;
        blockDim.x = threads;
        for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
            for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) thread();
    });
    cuLaunchHostFunc(stream, [](void* work) { (*static_cast<std::function<void()>*>(work))(); }, all);
}
#define LAUNCH(kernel, blocks, threads, stream, ...) \
    kernel_lab_launch(blocks, threads, stream, [=] { kernel(__VA_ARGS__); })
