// Vector types of CUDA and HIP, and how they are made.
#pragma once

#include <stddef.h>

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

#define SIMT_VECTOR(name, T)                                                                                  \
    struct name##1 { T x; };                                                                                  \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                                        \
    struct name##3 { T x, y, z; };                                                                            \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) name##4 { T x, y, z, w; };                        \
    inline constexpr name##1 make_##name##1(T x) { return {x}; }                                              \
    inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                      \
    inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                              \
    inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMT_VECTOR(char, signed char)
SIMT_VECTOR(uchar, unsigned char)
SIMT_VECTOR(short, short)
SIMT_VECTOR(ushort, unsigned short)
SIMT_VECTOR(int, int)
SIMT_VECTOR(uint, unsigned)
SIMT_VECTOR(long, long)
SIMT_VECTOR(ulong, unsigned long)
SIMT_VECTOR(longlong, long long)
SIMT_VECTOR(ulonglong, unsigned long long)
SIMT_VECTOR(float, float)
SIMT_VECTOR(double, double)
#undef SIMT_VECTOR

#if SIMT_HIP  // which has arithmetic for them; in CUDA a source brings its own
#define SIMT_OPERATOR(V, T, op)                                     \
    inline V##2 operator op(V##2 a, V##2 b) { return {T(a.x op b.x), T(a.y op b.y)}; } \
    inline V##2 operator op(V##2 a, T b) { return {T(a.x op b), T(a.y op b)}; }       \
    inline V##2 operator op(T a, V##2 b) { return {T(a op b.x), T(a op b.y)}; }       \
    inline V##2& operator op##=(V##2& a, V##2 b) { return a = a op b; }               \
    inline V##2& operator op##=(V##2& a, T b) { return a = a op b; }                  \
    inline V##4 operator op(V##4 a, V##4 b) {                                         \
        return {T(a.x op b.x), T(a.y op b.y), T(a.z op b.z), T(a.w op b.w)};          \
    }                                                                                 \
    inline V##4 operator op(V##4 a, T b) { return a op V##4{b, b, b, b}; }            \
    inline V##4 operator op(T a, V##4 b) { return V##4{a, a, a, a} op b; }            \
    inline V##4& operator op##=(V##4& a, V##4 b) { return a = a op b; }               \
    inline V##4& operator op##=(V##4& a, T b) { return a = a op b; }
#define SIMT_OPERATORS(V, T)           \
    SIMT_OPERATOR(V, T, +)    \
    SIMT_OPERATOR(V, T, -)    \
    SIMT_OPERATOR(V, T, *)    \
    SIMT_OPERATOR(V, T, /)
SIMT_OPERATORS(float, float)
SIMT_OPERATORS(double, double)
SIMT_OPERATORS(int, int)
SIMT_OPERATORS(uint, unsigned)
#undef SIMT_OPERATOR
#undef SIMT_OPERATORS
#endif
