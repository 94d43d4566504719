// The part of HIP that device code needs, for a clang without ROCm. Where ROCm is, its own header is taken instead.
// Host functions are declared only: nothing here launches. Double transcendentals, printf and textures are left out.
#pragma once

#if !defined(__HIP__)
#error "this header is for clang -x hip"
#endif

#include <stddef.h>
#include <stdint.h>
#if __has_include(<cmath>)
#include <cmath>
#endif
#include <float.h>
#include <limits.h>
#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#endif

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// Threads of the largest workgroup, and as in HIP the least number of waves a SIMD.
#define LAB_BOUNDS1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define LAB_BOUNDS2(threads, waves) LAB_BOUNDS1(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define LAB_BOUNDS(_1, _2, chosen, ...) chosen
#define __launch_bounds__(...) LAB_BOUNDS(__VA_ARGS__, LAB_BOUNDS2, LAB_BOUNDS1, )(__VA_ARGS__)
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define LAB_DEVICE static __forceinline__ __device__

struct dim3 {
    uint32_t x, y, z;
    constexpr __host__ __device__ dim3(uint32_t x = 1, uint32_t y = 1, uint32_t z = 1) : x(x), y(y), z(z) {}
};

// --- where a thread is ---------------------------------------------------------------------------------------------

#define LAB_INDEX(name, X, Y, Z)                        \
    struct lab_##name {                                 \
        __declspec(property(get = get_x)) uint32_t x;   \
        __declspec(property(get = get_y)) uint32_t y;   \
        __declspec(property(get = get_z)) uint32_t z;   \
        __forceinline__ __device__ uint32_t get_x() const { return X; } \
        __forceinline__ __device__ uint32_t get_y() const { return Y; } \
        __forceinline__ __device__ uint32_t get_z() const { return Z; } \
        __forceinline__ __device__ operator dim3() const { return dim3(X, Y, Z); } \
    };                                                  \
    extern const __device__ __attribute__((weak)) lab_##name name;

LAB_INDEX(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z())
LAB_INDEX(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
          __builtin_amdgcn_workgroup_id_z())
LAB_INDEX(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_workgroup_size_z())
LAB_INDEX(gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
          __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())

constexpr int warpSize = 64;

LAB_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
LAB_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
LAB_DEVICE void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
LAB_DEVICE void __syncwarp() { __builtin_amdgcn_wave_barrier(); }

// --- lanes of a wave -----------------------------------------------------------------------------------------------

LAB_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
LAB_DEVICE unsigned long long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
LAB_DEVICE int __any(int predicate) { return __ballot(predicate) != 0; }
LAB_DEVICE int __all(int predicate) { return __ballot(predicate) == __builtin_amdgcn_ballot_w64(true); }
LAB_DEVICE unsigned long long __activemask() { return __builtin_amdgcn_ballot_w64(true); }
LAB_DEVICE int __popc(unsigned value) { return __builtin_popcount(value); }
LAB_DEVICE int __popcll(unsigned long long value) { return __builtin_popcountll(value); }
LAB_DEVICE int __clz(int value) { return value ? __builtin_clz(value) : 32; }
LAB_DEVICE int __ffs(int value) { return __builtin_ffs(value); }
LAB_DEVICE int __ffsll(long long value) { return __builtin_ffsll(value); }

template <typename T>
LAB_DEVICE T lab_from_lane(T value, int lane) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "values of 4 or 8 bytes move between lanes");
    union {
        T value;
        int words[sizeof(T) / 4];
    } both = {value};
    for (int& word : both.words) word = __builtin_amdgcn_ds_bpermute(lane * 4, word);
    return both.value;
}
template <typename T>
LAB_DEVICE T __shfl(T value, int source, int width = 64) {
    int first = __lane_id() & ~(width - 1);
    return lab_from_lane(value, first + (source & (width - 1)));
}
template <typename T>
LAB_DEVICE T __shfl_xor(T value, int mask, int width = 64) {
    int lane = __lane_id(), other = lane ^ mask;
    return lab_from_lane(value, other >= ((lane + width) & ~(width - 1)) ? lane : other);
}
template <typename T>
LAB_DEVICE T __shfl_down(T value, unsigned delta, int width = 64) {
    int lane = __lane_id();
    return lab_from_lane(value, (lane & (width - 1)) + int(delta) >= width ? lane : lane + int(delta));
}
template <typename T>
LAB_DEVICE T __shfl_up(T value, unsigned delta, int width = 64) {
    int lane = __lane_id();
    return lab_from_lane(value, (lane & (width - 1)) < int(delta) ? lane : lane - int(delta));
}

// --- atomics -------------------------------------------------------------------------------------------------------

template <typename T>
LAB_DEVICE T atomicAdd(T* at, T value) {
    return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicSub(T* at, T value) {
    return __hip_atomic_fetch_add(at, -value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicMax(T* at, T value) {
    return __hip_atomic_fetch_max(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicMin(T* at, T value) {
    return __hip_atomic_fetch_min(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicAnd(T* at, T value) {
    return __hip_atomic_fetch_and(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicOr(T* at, T value) {
    return __hip_atomic_fetch_or(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicExch(T* at, T value) {
    return __hip_atomic_exchange(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <typename T>
LAB_DEVICE T atomicCAS(T* at, T compare, T value) {
    __hip_atomic_compare_exchange_strong(at, &compare, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return compare;
}

// --- mathematics ---------------------------------------------------------------------------------------------------

#define LAB_MATH1(name) \
    LAB_DEVICE float name(float x) { return __builtin_##name(x); }
LAB_MATH1(sqrtf) LAB_MATH1(expf) LAB_MATH1(exp2f) LAB_MATH1(logf) LAB_MATH1(log2f) LAB_MATH1(log10f) LAB_MATH1(sinf)
LAB_MATH1(cosf) LAB_MATH1(fabsf) LAB_MATH1(floorf) LAB_MATH1(ceilf) LAB_MATH1(truncf) LAB_MATH1(rintf) LAB_MATH1(roundf)
LAB_DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LAB_DEVICE float fminf(float a, float b) { return __builtin_fminf(a, b); }
LAB_DEVICE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
LAB_DEVICE float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
LAB_DEVICE float powf(float x, float y) { return __builtin_exp2f(y * __builtin_log2f(x)); }
LAB_DEVICE float tanhf(float x) {
    float small = __builtin_expf(-2.0f * __builtin_fabsf(x));
    return __builtin_copysignf((1.0f - small) / (1.0f + small), x);
}
LAB_DEVICE float __expf(float x) { return __builtin_amdgcn_exp2f(x * 1.44269504f); }
LAB_DEVICE float __logf(float x) { return __builtin_amdgcn_logf(x) * 0.69314718f; }
LAB_DEVICE float __fdividef(float x, float y) { return x * __builtin_amdgcn_rcpf(y); }
LAB_DEVICE float __frsqrt_rn(float x) { return __builtin_amdgcn_rsqf(x); }
LAB_DEVICE float sqrt(float x) { return __builtin_sqrtf(x); }
LAB_DEVICE float exp(float x) { return __builtin_expf(x); }
LAB_DEVICE float log(float x) { return __builtin_logf(x); }
LAB_DEVICE float fabs(float x) { return __builtin_fabsf(x); }
LAB_DEVICE double sqrt(double x) { return __builtin_sqrt(x); }
LAB_DEVICE double fabs(double x) { return __builtin_fabs(x); }
LAB_DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
LAB_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
LAB_DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
LAB_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
LAB_DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
template <typename T>
LAB_DEVICE const T& min(const T& a, const T& b) {
    return b < a ? b : a;
}
template <typename T>
LAB_DEVICE const T& max(const T& a, const T& b) {
    return a < b ? b : a;
}
template <typename T>
LAB_DEVICE T __ldg(const T* at) {
    return *at;
}

// --- vectors -------------------------------------------------------------------------------------------------------

#define LAB_VECTORS(type, name)                                                                                 \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                                    \
    struct name##3 { type x, y, z; };                                                                           \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; };                                              \
    static constexpr __host__ __device__ name##2 make_##name##2(type x, type y) { return {x, y}; }              \
    static constexpr __host__ __device__ name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }   \
    static constexpr __host__ __device__ name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
LAB_VECTORS(float, float)
LAB_VECTORS(int, int)
LAB_VECTORS(unsigned, uint)

#define LAB_OPERATOR(type, op)                                                                                     \
    LAB_DEVICE type##2 operator op(type##2 a, type##2 b) { return {a.x op b.x, a.y op b.y}; }                       \
    LAB_DEVICE type##4 operator op(type##4 a, type##4 b) { return {a.x op b.x, a.y op b.y, a.z op b.z, a.w op b.w}; } \
    LAB_DEVICE type##4 operator op(type##4 a, type b) { return {a.x op b, a.y op b, a.z op b, a.w op b}; }           \
    LAB_DEVICE type##4& operator op##=(type##4& a, type##4 b) { return a = a op b; }                                 \
    LAB_DEVICE type##4& operator op##=(type##4& a, type b) { return a = a op b; }
LAB_OPERATOR(float, +) LAB_OPERATOR(float, -) LAB_OPERATOR(float, *) LAB_OPERATOR(float, /)
LAB_OPERATOR(int, +) LAB_OPERATOR(int, -) LAB_OPERATOR(int, *)

// --- host: declared, so that a launch can be read ------------------------------------------------------------------

typedef struct ihipStream_t* hipStream_t;
enum hipError_t { hipSuccess = 0, hipErrorInvalidValue = 1, hipErrorOutOfMemory = 2, hipErrorUnknown = 999 };
enum hipMemcpyKind { hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice };
enum hipFuncAttribute { hipFuncAttributeMaxDynamicSharedMemorySize = 8 };
extern "C" {
unsigned __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, hipStream_t stream = nullptr);
hipError_t hipLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared, hipStream_t stream);
hipError_t hipFuncSetAttribute(const void* kernel, hipFuncAttribute attribute, int value);
hipError_t hipMalloc(void** at, size_t bytes);
hipError_t hipMallocAsync(void** at, size_t bytes, hipStream_t stream);
hipError_t hipFree(void* at);
hipError_t hipFreeAsync(void* at, hipStream_t stream);
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemset(void* at, int value, size_t bytes);
hipError_t hipMemsetAsync(void* at, int value, size_t bytes, hipStream_t stream);
hipError_t hipDeviceSynchronize();
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
const char* hipGetErrorString(hipError_t error);
}
template <typename T>
static inline hipError_t hipMalloc(T** at, size_t bytes) {
    return hipMalloc((void**)at, bytes);
}
#define hipLaunchKernelGGL(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
