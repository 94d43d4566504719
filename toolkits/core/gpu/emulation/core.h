// What a kernel sees of a launch: indices, barriers, warp operations, atomics. How threads take turns is runtime.cpp's.
#pragma once

#include <source_location>
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>

#include "types.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// Memory that is changed on purpose where others look: no access of its own kind is held against it.
#if SIMT_CHECK
#define SIMT_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define SIMT_UNSEEN inline
#endif

#pragma GCC visibility push(hidden)

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = SIMT_WARP;

namespace simt {

using Where = std::source_location;
constexpr uint64_t ALL_LANES = SIMT_WARP == 64 ? ~0ull : 0xffffffffull;
constexpr uint64_t WHO_IS_HERE = 0;  // the mask of an operation that names no lanes: those that come together

struct Configuration {
    dim3 grid, block;
    size_t shared = 0;
    Configuration(dim3 grid_, dim3 block_, size_t shared_ = 0, const void* = nullptr)
        : grid(grid_), block(block_), shared(shared_) {}
};

enum class Operation : uint8_t { SYNC, SHUFFLE, VOTE, MATCH };
enum class Count : uint8_t { NONE, COUNT, AND, OR };

void run(const Configuration& how, const char* kernel, void (*body)(void*), void* closure, Where at);
int barrier(Count what, int predicate, Where at);
// The ballot of a vote, or the lanes whose value is equal; of a shuffle, `result` is the source lane's value.
uint64_t together(
    Operation what, uint64_t mask, const void* value, unsigned size, unsigned source, void* result, Where at
);
void turn();  // let the others run: whoever spins waits for one of them
unsigned lane();
unsigned rank();
void* dynamic_shared();
void touched(const void* address, unsigned size, bool written, bool atomic, Where at);
[[noreturn]] void refuse(const char* what, Where at);

template <class F>
struct Launcher {
    Configuration how;
    const char* kernel;
    F function;
    Where at;

    template <class... A>
    void operator()(A... arguments) {
        auto call = [this, values = std::tuple<A...>(arguments...)] { std::apply(function, values); };
        run(how, kernel, [](void* closure) { (*static_cast<decltype(call)*>(closure))(); }, &call, at);
    }
};

template <class F>
Launcher<F> launcher(Configuration how, const char* kernel, F function, Where at = Where::current()) {
    return {how, kernel, function, at};
}

template <class T>
inline T shuffled(uint64_t mask, T value, unsigned source, Where at) {
    static_assert(sizeof(T) <= 16 && std::is_trivially_copyable_v<T>);
    T result;
    together(Operation::SHUFFLE, mask, &value, sizeof value, source, &result, at);
    return result;
}

// Source lanes as the hardware has them: outside of its segment of `width` lanes each keeps its own value.
inline unsigned source_of(int from, int width) {
    const int first = static_cast<int>(lane()) & ~(width - 1);
    return static_cast<unsigned>(first + (from & (width - 1)));
}
inline unsigned source_up(unsigned delta, int width) {
    const unsigned own = lane(), within = own & static_cast<unsigned>(width - 1);
    return delta > within ? own : own - delta;
}
inline unsigned source_down(unsigned delta, int width) {
    const unsigned own = lane(), within = own & static_cast<unsigned>(width - 1);
    return within + delta >= static_cast<unsigned>(width) ? own : own + delta;
}
inline unsigned source_xor(int other, int width) {
    const unsigned own = lane(), to = own ^ static_cast<unsigned>(other);
    return to / static_cast<unsigned>(width) > own / static_cast<unsigned>(width) ? own : to;
}

inline uint64_t ballot(uint64_t mask, int predicate, Where at) {
    return together(Operation::VOTE, mask, nullptr, 0, predicate != 0, nullptr, at);
}

template <class T, class F>
SIMT_UNSEEN T changed(T* address, F change, Where at) {
#if SIMT_CHECK
    touched(address, sizeof(T), true, true, at);
#endif
    const T before = *address;
    *address = change(before);
    return before;
}

template <class T>
using Same = std::type_identity_t<T>;

}  // namespace simt

#define SIMT_AT simt::Where at = simt::Where::current()

// --- the block ---------------------------------------------------------------------------------------------------

inline void __syncthreads(SIMT_AT) { simt::barrier(simt::Count::NONE, 0, at); }
inline int __syncthreads_count(int predicate, SIMT_AT) { return simt::barrier(simt::Count::COUNT, predicate, at); }
inline int __syncthreads_and(int predicate, SIMT_AT) { return simt::barrier(simt::Count::AND, predicate, at); }
inline int __syncthreads_or(int predicate, SIMT_AT) { return simt::barrier(simt::Count::OR, predicate, at); }
inline void __threadfence() { simt::turn(); }
inline void __threadfence_block() { simt::turn(); }
inline void __threadfence_system() { simt::turn(); }
inline void __nanosleep(unsigned) { simt::turn(); }

// --- the warp ----------------------------------------------------------------------------------------------------

inline void __syncwarp(uint64_t mask = simt::ALL_LANES, SIMT_AT) {
    simt::together(simt::Operation::SYNC, mask & simt::ALL_LANES, nullptr, 0, 0, nullptr, at);
}
template <class T>
inline T __shfl_sync(uint64_t mask, T value, int from, int width = warpSize, SIMT_AT) {
    return simt::shuffled(mask & simt::ALL_LANES, value, simt::source_of(from, width), at);
}
template <class T>
inline T __shfl_up_sync(uint64_t mask, T value, unsigned delta, int width = warpSize, SIMT_AT) {
    return simt::shuffled(mask & simt::ALL_LANES, value, simt::source_up(delta, width), at);
}
template <class T>
inline T __shfl_down_sync(uint64_t mask, T value, unsigned delta, int width = warpSize, SIMT_AT) {
    return simt::shuffled(mask & simt::ALL_LANES, value, simt::source_down(delta, width), at);
}
template <class T>
inline T __shfl_xor_sync(uint64_t mask, T value, int other, int width = warpSize, SIMT_AT) {
    return simt::shuffled(mask & simt::ALL_LANES, value, simt::source_xor(other, width), at);
}
using simt_mask = std::conditional_t<SIMT_WARP == 64, uint64_t, unsigned>;
inline simt_mask __ballot_sync(uint64_t mask, int predicate, SIMT_AT) {
    return static_cast<simt_mask>(simt::ballot(mask & simt::ALL_LANES, predicate, at));
}
inline int __any_sync(uint64_t mask, int predicate, SIMT_AT) {
    return simt::ballot(mask & simt::ALL_LANES, predicate, at) != 0;
}
inline int __all_sync(uint64_t mask, int predicate, SIMT_AT) {
    return simt::ballot(mask & simt::ALL_LANES, !predicate, at) == 0;
}
inline simt_mask __activemask(SIMT_AT) { return static_cast<simt_mask>(simt::ballot(simt::WHO_IS_HERE, 1, at)); }
template <class T>
inline simt_mask __match_any_sync(uint64_t mask, T value, SIMT_AT) {
    mask &= simt::ALL_LANES;
    return static_cast<simt_mask>(simt::together(simt::Operation::MATCH, mask, &value, sizeof value, 0, nullptr, at));
}
template <class T>
inline simt_mask __match_all_sync(uint64_t mask, T value, int* all, SIMT_AT) {
    const simt_mask equal = __match_any_sync(mask, value, at), everybody = __ballot_sync(mask, 1, at);
    *all = equal == everybody;
    return *all ? everybody : 0;
}
template <class T, class F>
inline T simt_reduced(uint64_t mask, T value, F join, SIMT_AT) {
    const uint64_t here = simt::ballot(mask & simt::ALL_LANES, 1, at);
    T result = value;
    bool first = true;
    for (unsigned from = 0; from < SIMT_WARP; from++) {
        if (!(here >> from & 1)) continue;
        const T other = simt::shuffled(mask & simt::ALL_LANES, value, from, at);
        result = first ? other : join(result, other);
        first = false;
    }
    return result;
}
template <class T>
inline T __reduce_add_sync(uint64_t mask, T value, SIMT_AT) {
    return simt_reduced(mask, value, [](T a, T b) { return a + b; }, at);
}
template <class T>
inline T __reduce_max_sync(uint64_t mask, T value, SIMT_AT) {
    return simt_reduced(mask, value, [](T a, T b) { return a < b ? b : a; }, at);
}
template <class T>
inline T __reduce_min_sync(uint64_t mask, T value, SIMT_AT) {
    return simt_reduced(mask, value, [](T a, T b) { return b < a ? b : a; }, at);
}

// --- atomics: only one thread runs at a time, so a plain change is one ----------------------------------------------

#define SIMT_ATOMIC(name, expression)                                             \
    template <class T>                                                            \
    inline T name(T* address, simt::Same<T> value, SIMT_AT) {                     \
        return simt::changed(address, [=](T old) -> T { return expression; }, at); \
    }                                                                             \
    template <class T>                                                            \
    inline T name##_block(T* address, simt::Same<T> value, SIMT_AT) {             \
        return name(address, value, at);                                          \
    }                                                                             \
    template <class T>                                                            \
    inline T name##_system(T* address, simt::Same<T> value, SIMT_AT) {            \
        return name(address, value, at);                                          \
    }
SIMT_ATOMIC(atomicAdd, static_cast<T>(old + value))
SIMT_ATOMIC(atomicSub, static_cast<T>(old - value))
SIMT_ATOMIC(atomicExch, ((void)old, value))
SIMT_ATOMIC(atomicMin, value < old ? value : old)
SIMT_ATOMIC(atomicMax, old < value ? value : old)
SIMT_ATOMIC(atomicAnd, old & value)
SIMT_ATOMIC(atomicOr, old | value)
SIMT_ATOMIC(atomicXor, old ^ value)
SIMT_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
SIMT_ATOMIC(atomicDec, old == 0 || old > value ? value : T(old - 1))
#undef SIMT_ATOMIC

template <class T>
inline T atomicCAS(T* address, simt::Same<T> compare, simt::Same<T> value, SIMT_AT) {
    const T before = simt::changed(address, [=](T old) { return old == compare ? value : old; }, at);
    if (!(before == compare)) simt::turn();
    return before;
}

template <class T>
__forceinline__ T __ldg(const T* address) { return *address; }
template <class T>
__forceinline__ T __ldcg(const T* address) { return *address; }
template <class T>
__forceinline__ T __ldca(const T* address) { return *address; }
template <class T>
__forceinline__ T __ldcs(const T* address) { return *address; }
template <class T>
__forceinline__ void __stcs(T* address, simt::Same<T> value) { *address = value; }
template <class T>
__forceinline__ void __stcg(T* address, simt::Same<T> value) { *address = value; }
inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
inline void __trap(SIMT_AT) { simt::refuse("__trap()", at); }

#pragma GCC visibility pop
