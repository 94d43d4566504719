// Half precision by clang's own type. Where ROCm is, its own header is taken instead.
#pragma once

#include <hip/hip_runtime.h>

typedef _Float16 __half;
typedef _Float16 half;
typedef _Float16 __half2 __attribute__((ext_vector_type(2)));
typedef __half2 half2;

static __forceinline__ __host__ __device__ float __half2float(__half value) { return value; }
static __forceinline__ __host__ __device__ __half __float2half(float value) { return static_cast<__half>(value); }
