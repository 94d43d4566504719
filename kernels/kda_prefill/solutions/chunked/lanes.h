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
typedef int32_t VecInt __attribute__((vector_size(LANE_BYTES)));
typedef float Quad __attribute__((vector_size(16)));

static inline Vec load(const float *from) {
    Vec v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

static inline void store(float *to, Vec v) { std::memcpy(to, &v, sizeof v); }

static inline Vec broadcast(float x) { return Vec{} + x; }

// Add the halves of a vector until four lanes are left.
template <class V>
static inline Quad fold(V v) {
    if constexpr (sizeof(V) == 64) {
        return fold(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
    } else if constexpr (sizeof(V) == 32) {
        return fold(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
    } else {
        return v;
    }
}

// The sums over the lanes of four vectors, by transposing: half the instructions of four separate sums.
static inline Quad sums(Vec a, Vec b, Vec c, Vec d) {
    const Quad x = fold(a), y = fold(b), z = fold(c), w = fold(d);
    const Quad xy = __builtin_shufflevector(x, y, 0, 4, 1, 5) + __builtin_shufflevector(x, y, 2, 6, 3, 7);
    const Quad zw = __builtin_shufflevector(z, w, 0, 4, 1, 5) + __builtin_shufflevector(z, w, 2, 6, 3, 7);
    return __builtin_shufflevector(xy, zw, 0, 1, 4, 5) + __builtin_shufflevector(xy, zw, 2, 3, 6, 7);
}

static inline float sum(Vec v) {
    const Quad x = fold(v);
    return (x[0] + x[1]) + (x[2] + x[3]);
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

static inline Vec sigmoid(Vec x) { return 1.0f / (1.0f + exponential(-x)); }
