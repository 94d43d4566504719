// Vectors of floats in compiler extensions: as wide as VECTOR_BYTES asks for, never wider than the target has.
// A 64-byte vector built for AVX2 is legal and some twenty times slower, hence the clamp.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int TARGET_BYTES = 64;
#elif defined(__AVX__)
constexpr int TARGET_BYTES = 32;
#else
constexpr int TARGET_BYTES = 16;
#endif
constexpr int LANE_BYTES = VECTOR_BYTES < TARGET_BYTES ? VECTOR_BYTES : TARGET_BYTES;
constexpr int LANES = LANE_BYTES / 4;

typedef float Vec __attribute__((vector_size(LANE_BYTES)));
typedef float Quad __attribute__((vector_size(16)));
typedef int32_t VecInt __attribute__((vector_size(LANE_BYTES)));

static inline Vec load(const float *from) {
    Vec v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

static inline void store(float *to, Vec v) { std::memcpy(to, &v, sizeof v); }

static inline Vec broadcast(float x) { return Vec{} + x; }

static inline Vec larger(Vec a, Vec b) { return a > b ? a : b; }

template <class V>
static inline auto lower_half(V v) {
    if constexpr (sizeof(V) == 64) return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    else return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}

template <class V>
static inline auto upper_half(V v) {
    if constexpr (sizeof(V) == 64) return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    else return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

// Over the lanes of a vector, by halves: a chain over single lanes would wait for every one of them.
template <class V>
static inline float sum(V v) {
    if constexpr (sizeof(V) > 16) return sum(lower_half(v) + upper_half(v));
    else return (v[0] + v[1]) + (v[2] + v[3]);
}

template <class V>
static inline float largest(V v) {
    if constexpr (sizeof(V) > 16) {
        const auto a = lower_half(v), b = upper_half(v);
        return largest(a > b ? a : b);
    } else {
        const float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
        return a > b ? a : b;
    }
}

// e^x to about one unit in the last place for x in [-87, 88]; smaller and larger x count as these bounds.
static inline Vec exponential(Vec x) {
    x = x < -87.0f ? broadcast(-87.0f) : x;
    x = x > 88.0f ? broadcast(88.0f) : x;
    const float round_to_integer = 12582912.0f;  // 1.5 * 2^23: adding it leaves the integer in the low bits
    const Vec shifted = x * 1.44269504f + round_to_integer;
    const Vec n = shifted - round_to_integer;
    const Vec f = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    Vec p = broadcast(1.9875691500e-4f);
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    return p * (Vec)(((VecInt)shifted << 23) + (127 << 23));
}

// to[d][c] = from[c][d] for `count` rows of `width` floats (a multiple of four); a negative from_row reads upwards.
static inline void transpose(const float *from, int64_t from_row, int64_t count, int width, float *to, int64_t to_row) {
    int64_t c = 0;
    for (; c + 4 <= count; c += 4)
        for (int d = 0; d < width; d += 4) {
            Quad in[4];
            for (int x = 0; x < 4; x++) std::memcpy(&in[x], from + (c + x) * from_row + d, sizeof in[x]);
            const Quad a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5);
            const Quad b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
            const Quad e = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7);
            const Quad f = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
            const Quad out[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                                 __builtin_shufflevector(e, f, 0, 1, 4, 5), __builtin_shufflevector(e, f, 2, 3, 6, 7)};
            for (int x = 0; x < 4; x++) std::memcpy(to + (d + x) * to_row + c, &out[x], sizeof out[x]);
        }
    for (; c < count; c++)
        for (int d = 0; d < width; d++) to[d * to_row + c] = from[c * from_row + d];
}
