// HIP's own names: operations of a wavefront without a mask of lanes, and the compiler's builtins that mean the same.
#pragma once

#include "core.h"

template <class T>
inline T __shfl(T value, int from, int width = warpSize, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, simt::source_of(from, width), at);
}
template <class T>
inline T __shfl_up(T value, unsigned delta, int width = warpSize, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, simt::source_up(delta, width), at);
}
template <class T>
inline T __shfl_down(T value, unsigned delta, int width = warpSize, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, simt::source_down(delta, width), at);
}
template <class T>
inline T __shfl_xor(T value, int other, int width = warpSize, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, simt::source_xor(other, width), at);
}
inline uint64_t __ballot(int predicate, SIMT_AT) { return simt::ballot(simt::WHO_IS_HERE, predicate, at); }
inline int __any(int predicate, SIMT_AT) { return simt::ballot(simt::WHO_IS_HERE, predicate, at) != 0; }
inline int __all(int predicate, SIMT_AT) { return simt::ballot(simt::WHO_IS_HERE, !predicate, at) == 0; }
inline unsigned __lane_id() { return simt::lane(); }

inline unsigned __builtin_amdgcn_workitem_id_x() { return threadIdx.x; }
inline unsigned __builtin_amdgcn_workitem_id_y() { return threadIdx.y; }
inline unsigned __builtin_amdgcn_workitem_id_z() { return threadIdx.z; }
inline unsigned __builtin_amdgcn_workgroup_id_x() { return blockIdx.x; }
inline unsigned __builtin_amdgcn_workgroup_id_y() { return blockIdx.y; }
inline unsigned __builtin_amdgcn_workgroup_id_z() { return blockIdx.z; }
inline unsigned __builtin_amdgcn_workgroup_size_x() { return blockDim.x; }
inline unsigned __builtin_amdgcn_workgroup_size_y() { return blockDim.y; }
inline unsigned __builtin_amdgcn_workgroup_size_z() { return blockDim.z; }
inline void __builtin_amdgcn_s_barrier(SIMT_AT) { __syncthreads(at); }
inline void __builtin_amdgcn_wave_barrier(SIMT_AT) {
    simt::together(simt::Operation::SYNC, simt::WHO_IS_HERE, nullptr, 0, 0, nullptr, at);
}
inline void __builtin_amdgcn_s_waitcnt(int) {}
inline void __builtin_amdgcn_sched_barrier(int) {}
inline void __builtin_amdgcn_sched_group_barrier(int, int, int) {}
inline void __builtin_amdgcn_s_setprio(int) {}
inline void __builtin_amdgcn_s_sleep(int) { simt::turn(); }
#define __builtin_amdgcn_fence(...) simt::turn()
inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned sum) {
    const unsigned own = simt::lane();
    return sum + static_cast<unsigned>(__builtin_popcount(own < 32 ? mask & ((1u << own) - 1) : mask));
}
inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned sum) {
    const unsigned own = simt::lane();
    return sum + (own < 32 ? 0u : static_cast<unsigned>(__builtin_popcount(mask & ((1u << (own - 32)) - 1))));
}
template <class T>
inline T __builtin_amdgcn_readfirstlane(T value, SIMT_AT) {
    const uint64_t here = simt::ballot(simt::WHO_IS_HERE, 1, at);
    return simt::shuffled(here, value, static_cast<unsigned>(__builtin_ctzll(here)), at);
}
template <class T>
inline T __builtin_amdgcn_readlane(T value, int from, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, static_cast<unsigned>(from), at);
}
inline int __builtin_amdgcn_ds_bpermute(int address, int value, SIMT_AT) {
    return simt::shuffled(simt::WHO_IS_HERE, value, static_cast<unsigned>(address) / 4 % warpSize, at);
}
inline float __builtin_amdgcn_rcpf(float x) { return 1.0f / x; }
inline float __builtin_amdgcn_rsqf(float x) { return 1.0f / __builtin_sqrtf(x); }
inline float __builtin_amdgcn_sqrtf(float x) { return __builtin_sqrtf(x); }
inline float __builtin_amdgcn_exp2f(float x) { return __builtin_exp2f(x); }
inline float __builtin_amdgcn_logf(float x) { return __builtin_log2f(x); }
inline float __builtin_amdgcn_fmed3f(float a, float b, float c) {
    return __builtin_fmaxf(__builtin_fminf(a, b), __builtin_fminf(__builtin_fmaxf(a, b), c));
}
template <class T>
inline T unsafeAtomicAdd(T* address, simt::Same<T> value) { return atomicAdd(address, value); }
