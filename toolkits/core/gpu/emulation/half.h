// The 16-bit floats: kept in two bytes, every operation in float and rounded to nearest even, as the device does.
#pragma once

#include "core.h"
#include "device_math.h"

namespace simt {

inline float widened_half(uint16_t bits) {
    const unsigned sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 0) return __uint_as_float(sign | __float_as_uint(static_cast<float>(fraction) * 0x1p-24f));
    return __uint_as_float(sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | fraction << 13);
}

inline uint16_t narrowed_half(float value) {
    const unsigned bits = __float_as_uint(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return static_cast<uint16_t>(sign | 0x7fff);
    if (size >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);
    if (size < 0x38800000)  // below the least normal number: adding 0.5 leaves the fraction, rounded, in the last bits
        return static_cast<uint16_t>(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000));
    return static_cast<uint16_t>(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}

inline float widened_bfloat16(uint16_t bits) { return __uint_as_float(static_cast<unsigned>(bits) << 16); }

inline uint16_t narrowed_bfloat16(float value) {
    const unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <float widen(uint16_t), uint16_t narrow(float)>
struct Narrow {
    uint16_t x;
    Narrow() = default;  // no constructor runs where it is shared
    Narrow(float value) : x(narrow(value)) {}
    Narrow(double value) : x(narrow(static_cast<float>(value))) {}
    Narrow(int value) : x(narrow(static_cast<float>(value))) {}
    Narrow(unsigned value) : x(narrow(static_cast<float>(value))) {}
    Narrow(long value) : x(narrow(static_cast<float>(value))) {}
    operator float() const { return widen(x); }
    static Narrow of_bits(uint16_t bits) {
        Narrow value;
        value.x = bits;
        return value;
    }
#define SIMT_BOTH(op)                                                                                      \
    friend Narrow operator op(Narrow a, Narrow b) { return {static_cast<float>(a) op static_cast<float>(b)}; } \
    friend Narrow& operator op##=(Narrow& a, Narrow b) { return a = a op b; }
    SIMT_BOTH(+)
    SIMT_BOTH(-)
    SIMT_BOTH(*)
    SIMT_BOTH(/)
#undef SIMT_BOTH
    Narrow operator-() const { return of_bits(x ^ 0x8000); }
#define SIMT_COMPARED(op) \
    friend bool operator op(Narrow a, Narrow b) { return static_cast<float>(a) op static_cast<float>(b); }
    SIMT_COMPARED(==)
    SIMT_COMPARED(!=)
    SIMT_COMPARED(<)
    SIMT_COMPARED(<=)
    SIMT_COMPARED(>)
    SIMT_COMPARED(>=)
#undef SIMT_COMPARED
};

template <class N>
struct alignas(4) Pair {
    N x, y;
#define SIMT_BOTH(op)                                                            \
    friend Pair operator op(Pair a, Pair b) { return {a.x op b.x, a.y op b.y}; } \
    friend Pair& operator op##=(Pair& a, Pair b) { return a = a op b; }
    SIMT_BOTH(+)
    SIMT_BOTH(-)
    SIMT_BOTH(*)
    SIMT_BOTH(/)
#undef SIMT_BOTH
};

}  // namespace simt

using __half = simt::Narrow<simt::widened_half, simt::narrowed_half>;
using __nv_bfloat16 = simt::Narrow<simt::widened_bfloat16, simt::narrowed_bfloat16>;
using half = __half;
using __half2 = simt::Pair<__half>;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using __nv_bfloat162 = simt::Pair<__nv_bfloat16>;
using nv_bfloat162 = __nv_bfloat162;
using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;
using hip_bfloat16 = __nv_bfloat16;

#define SIMT_CONVERSIONS(N, P, name)                                                     \
    inline N __float2##name(float v) { return v; }                                       \
    inline N __float2##name##_rn(float v) { return v; }                                  \
    inline N __double2##name(double v) { return v; }                                     \
    inline N __int2##name##_rn(int v) { return v; }                                      \
    inline float __##name##2float(N v) { return v; }                                     \
    inline P __float2##name##2_rn(float v) { return {v, v}; }                            \
    inline P __floats2##name##2_rn(float a, float b) { return {a, b}; }                  \
    inline P __float22##name##2_rn(float2 v) { return {v.x, v.y}; }                      \
    inline float2 __##name##22float2(P v) { return {v.x, v.y}; }                         \
    inline P __##name##2##name##2(N v) { return {v, v}; }                                \
    inline P __halves2##name##2(N a, N b) { return {a, b}; }
SIMT_CONVERSIONS(__half, __half2, half)
SIMT_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16)
#undef SIMT_CONVERSIONS
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline int __half2int_rn(__half v) { return __float2int_rn(v); }
inline unsigned short __half_as_ushort(__half v) { return v.x; }
inline __half __ushort_as_half(unsigned short bits) { return __half::of_bits(bits); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16::of_bits(bits); }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }

#define SIMT_FUNCTIONS(N, P)                                                    \
    inline N __low2half(P v, N* = nullptr) { return v.x; }                      \
    inline N __high2half(P v, N* = nullptr) { return v.y; }                     \
    inline N __hadd(N a, N b) { return a + b; }                                 \
    inline N __hsub(N a, N b) { return a - b; }                                 \
    inline N __hmul(N a, N b) { return a * b; }                                 \
    inline N __hdiv(N a, N b) { return a / b; }                                 \
    inline N __hneg(N a) { return -a; }                                         \
    inline N __habs(N a) { return N(fabsf(a)); }                                \
    inline N __hfma(N a, N b, N c) { return N(fmaf(a, b, c)); }                 \
    inline N __hmax(N a, N b) { return N(fmaxf(a, b)); }                        \
    inline N __hmin(N a, N b) { return N(fminf(a, b)); }                        \
    inline bool __heq(N a, N b) { return a == b; }                              \
    inline bool __hne(N a, N b) { return a != b; }                              \
    inline bool __hlt(N a, N b) { return a < b; }                               \
    inline bool __hle(N a, N b) { return a <= b; }                              \
    inline bool __hgt(N a, N b) { return a > b; }                               \
    inline bool __hge(N a, N b) { return a >= b; }                              \
    inline bool __hisnan(N a) { return isnan(static_cast<float>(a)); }          \
    inline N hexp(N a) { return N(expf(a)); }                                   \
    inline N hexp2(N a) { return N(exp2f(a)); }                                 \
    inline N hlog(N a) { return N(logf(a)); }                                   \
    inline N hsqrt(N a) { return N(sqrtf(a)); }                                 \
    inline N hrsqrt(N a) { return N(rsqrtf(a)); }                               \
    inline N hrcp(N a) { return N(1.0f / static_cast<float>(a)); }                                  \
    inline P __hadd2(P a, P b) { return a + b; }                                \
    inline P __hsub2(P a, P b) { return a - b; }                                \
    inline P __hmul2(P a, P b) { return a * b; }                                \
    inline P __hfma2(P a, P b, P c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    inline P __hmax2(P a, P b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
    inline P __hmin2(P a, P b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
    inline P h2exp(P a) { return {hexp(a.x), hexp(a.y)}; }
SIMT_FUNCTIONS(__half, __half2)
SIMT_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef SIMT_FUNCTIONS
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
