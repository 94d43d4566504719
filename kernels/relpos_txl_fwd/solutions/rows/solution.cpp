// Relative attention, ROWS queries at a time: a whole row of scores, then softmax, then the values.
#include "lanes.h"
#include "task.h"

#include <algorithm>
#include <cstdint>
#include <vector>

constexpr int DIM = static_cast<int>(dim);
constexpr int WIDE = VECTORS * LANES;  // keys that one pass over the channels scores
static_assert(DIM % WIDE == 0, "VECTORS vectors must divide the 64 channels: choose fewer");

static int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// Row length of a transposed matrix: room for a last full tile, and an odd number of cache lines against aliasing.
static int64_t padded(int64_t columns) { return round_up(columns + WIDE, 32) + 16; }

struct Head {
    const float *keys, *offsets;  // transposed: [channel][key], [channel][j - i + tokens - 1]
    int64_t key_stride, offset_stride;
};

// Scores of queries i .. i + ROWS - 1 (content and offset query of each in the two arrays) for WIDE keys from j on.
static inline void score(const Head &head, const float (*content)[DIM], const float (*relative)[DIM],
                         const float *const *window, int64_t j, Vec (&s)[ROWS][VECTORS]) {
    for (int d = 0; d < DIM; d++) {
        Vec key[VECTORS];
        for (int x = 0; x < VECTORS; x++) key[x] = load(head.keys + d * head.key_stride + j + x * LANES);
        for (int row = 0; row < ROWS; row++)
            for (int x = 0; x < VECTORS; x++) {
                s[row][x] += content[row][d] * key[x];
                if constexpr (SPLIT == 0)
                    s[row][x] += relative[row][d] * load(window[row] + d * head.offset_stride + j + x * LANES);
            }
    }
    if constexpr (SPLIT != 0)
        for (int row = 0; row < ROWS; row++)
            for (int d = 0; d < DIM; d++)
                for (int x = 0; x < VECTORS; x++)
                    s[row][x] += relative[row][d] * load(window[row] + d * head.offset_stride + j + x * LANES);
}

// Scores become weights e^(s - max); returns one over their sum. The row is padded to whole vectors.
static float softmax(float *row, int64_t tokens) {
    const int64_t end = round_up(tokens, LANES);
    for (int64_t j = tokens; j < end; j++) row[j] = -1e30f;
    Vec most = load(row);
    for (int64_t j = LANES; j < end; j += LANES) most = larger(most, load(row + j));
    const float shift = largest(most);
    Vec total{};
    for (int64_t j = 0; j < end; j += LANES) {
        const Vec weight = exponential(load(row + j) - shift);
        store(row + j, weight);
        total += weight;
    }
    return 1.0f / sum(total);
}

// out[row] = inverse[row] * weights[row] V, WIDE channels at a time.
static void weigh_values(const float *weights, int64_t weight_stride, const float *inverse, const float *v,
                         int64_t tokens, float *const *out) {
    for (int d = 0; d < DIM; d += WIDE) {
        Vec c[ROWS][VECTORS]{};
        for (int64_t j = 0; j < tokens; j++) {
            Vec value[VECTORS];
            for (int x = 0; x < VECTORS; x++) value[x] = load(v + j * DIM + d + x * LANES);
            for (int row = 0; row < ROWS; row++)
                for (int x = 0; x < VECTORS; x++) c[row][x] += weights[row * weight_stride + j] * value[x];
        }
        for (int row = 0; row < ROWS; row++)
            for (int x = 0; x < VECTORS; x++) store(out[row] + d + x * LANES, c[row][x] * inverse[row]);
    }
}

extern "C" void relpos_txl_fwd(const float *q, const float *k, const float *v, const float *r, const float *u,
                               const float *w, float scale, float *out, int64_t heads, int64_t tokens) {
    const int64_t key_stride = padded(tokens), offset_stride = padded(2 * tokens - 1);
    static std::vector<float> scratch;  // kept between calls: fresh pages would cost a fault each, every time
    scratch.resize((key_stride + offset_stride) * DIM + ROWS * key_stride);
    float *keys = scratch.data(), *offsets = keys + key_stride * DIM, *weights = offsets + offset_stride * DIM;
    const Head head{keys, offsets, key_stride, offset_stride};
    for (int64_t h = 0; h < heads; h++, u += DIM, w += DIM) {
        transpose(k + h * tokens * DIM, DIM, tokens, DIM, keys, key_stride);
        // From the last row of the table to the first, so that columns run along ascending keys.
        transpose(r + ((h + 1) * (2 * tokens - 1) - 1) * DIM, -DIM, 2 * tokens - 1, DIM, offsets, offset_stride);
        for (int64_t i = 0; i < tokens; i += ROWS) {
            float content[ROWS][DIM], relative[ROWS][DIM], inverse[ROWS];
            const float *window[ROWS];
            float *to[ROWS];
            for (int row = 0; row < ROWS; row++) {
                const int64_t at = std::min(i + row, tokens - 1);  // a last, partial block repeats its last query
                window[row] = offsets + tokens - 1 - at;
                to[row] = out + (h * tokens + at) * DIM;
                for (int d = 0; d < DIM; d++) {
                    content[row][d] = (q[(h * tokens + at) * DIM + d] + u[d]) * scale;
                    relative[row][d] = (q[(h * tokens + at) * DIM + d] + w[d]) * scale;
                }
            }
            for (int64_t j = 0; j < tokens; j += WIDE) {
                Vec s[ROWS][VECTORS]{};
                score(head, content, relative, window, j, s);
                for (int row = 0; row < ROWS; row++)
                    for (int x = 0; x < VECTORS; x++) store(weights + row * key_stride + j + x * LANES, s[row][x]);
            }
            for (int row = 0; row < ROWS; row++) inverse[row] = softmax(weights + row * key_stride, tokens);
            weigh_values(weights, key_stride, inverse, v + h * tokens * DIM, tokens, to);
        }
    }
}
