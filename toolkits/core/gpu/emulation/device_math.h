// The device's mathematical functions and intrinsics, by what the host's library has. Approximate ones are exact here.
#pragma once

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// The C library declares functions of these names and has none.
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __sincosf sincosf
#define __exp2f exp2f

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f

#define SIMT_LESSER(R, A, B)                                                           \
    inline constexpr R min(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(a) : static_cast<R>(b); } \
    inline constexpr R max(A a, B b) { return static_cast<R>(a) < static_cast<R>(b) ? static_cast<R>(b) : static_cast<R>(a); }
SIMT_LESSER(int, int, int)
SIMT_LESSER(unsigned, unsigned, unsigned)
SIMT_LESSER(unsigned, int, unsigned)
SIMT_LESSER(unsigned, unsigned, int)
SIMT_LESSER(long, long, long)
SIMT_LESSER(unsigned long, unsigned long, unsigned long)
SIMT_LESSER(long long, long long, long long)
SIMT_LESSER(unsigned long long, unsigned long long, unsigned long long)
SIMT_LESSER(long, long, int)
SIMT_LESSER(long, int, long)
#undef SIMT_LESSER
// As the device has it: of a number and a NaN, the number.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

#define SIMT_SAME_BITS(name, To, From)    \
    inline To name(From value) {          \
        To bits;                          \
        memcpy(&bits, &value, sizeof bits); \
        return bits;                      \
    }
SIMT_SAME_BITS(__float_as_int, int, float)
SIMT_SAME_BITS(__float_as_uint, unsigned, float)
SIMT_SAME_BITS(__int_as_float, float, int)
SIMT_SAME_BITS(__uint_as_float, float, unsigned)
SIMT_SAME_BITS(__double_as_longlong, long long, double)
SIMT_SAME_BITS(__longlong_as_double, double, long long)
#undef SIMT_SAME_BITS

// Rounding in the names: nearest even, zero, down, up.
#define SIMT_TO_INTEGER(from, F, to, T)                                                     \
    inline T __##from##2##to##_rn(F x) { return static_cast<T>(rint(x)); }                  \
    inline T __##from##2##to##_rz(F x) { return static_cast<T>(trunc(x)); }                 \
    inline T __##from##2##to##_rd(F x) { return static_cast<T>(floor(x)); }                 \
    inline T __##from##2##to##_ru(F x) { return static_cast<T>(ceil(x)); }
SIMT_TO_INTEGER(float, float, int, int)
SIMT_TO_INTEGER(float, float, uint, unsigned)
SIMT_TO_INTEGER(float, float, ll, long long)
SIMT_TO_INTEGER(double, double, int, int)
SIMT_TO_INTEGER(double, double, ll, long long)
#undef SIMT_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __mul24(int a, int b) { return a * b; }
inline unsigned __umul24(unsigned a, unsigned b) { return a * b; }
inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((1ull * a * b) >> 32); }
inline unsigned __brev(unsigned x) {
    unsigned turned = 0;
    for (int bit = 0; bit < 32; bit++) turned |= (x >> bit & 1) << (31 - bit);
    return turned;
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= static_cast<unsigned>(both >> ((selector >> 4 * i & 7) * 8) & 0xff) << 8 * i;
    return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>(((static_cast<unsigned long long>(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31));
}
inline int __dp4a(int a, int b, int sum) {
    for (int i = 0; i < 4; i++)
        sum += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
    return sum;
}
