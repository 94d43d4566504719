// Relative attention in tiles: the offset term of a tile is one band product, read back skewed; softmax is online.
#include "lanes.h"
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int DIM = static_cast<int>(dim);
constexpr int WIDE = VECTORS * LANES;
static_assert(DIM % WIDE == 0, "VECTORS vectors must divide the 64 channels: choose fewer");
static_assert(KEYS % WIDE == 0, "VECTORS vectors must divide KEYS: choose fewer vectors or more keys");

constexpr int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }
constexpr int BAND = round_up(ROWS + KEYS - 1, LANES);  // offsets of a tile
constexpr float LOWEST = -1e30f;

// c += a b over `depth` terms: a is [ROWS][A_ROW], b is [depth][b_row].
template <int COUNT, int A_ROW>
static inline __attribute__((always_inline)) void product(Vec (&c)[ROWS][COUNT], const float *a, const float *b,
                                                          int64_t b_row, int64_t depth) {
    for (int64_t d = 0; d < depth; d++, a++, b += b_row) {
        Vec line[COUNT];
        for (int x = 0; x < COUNT; x++) line[x] = load(b + x * LANES);
#pragma GCC unroll 16
        for (int row = 0; row < ROWS; row++)
#pragma GCC unroll 16
            for (int x = 0; x < COUNT; x++) c[row][x] += a[row * A_ROW] * line[x];
    }
}

// COUNT vectors of the product of queries with transposed keys or offsets.
template <int COUNT>
static inline __attribute__((always_inline)) void dots(const float *queries, const float *columns, int64_t stride,
                                                       float *to, int to_row) {
    Vec c[ROWS][COUNT]{};
    product<COUNT, DIM>(c, queries, columns, stride, DIM);
    for (int row = 0; row < ROWS; row++)
        for (int x = 0; x < COUNT; x++) store(to + row * to_row + x * LANES, c[row][x]);
}

struct Tile {
    alignas(64) float content[ROWS][DIM];   // (q + u) * scale
    alignas(64) float relative[ROWS][DIM];  // (q + w) * scale
    alignas(64) float scores[ROWS][KEYS];  // then weights
    alignas(64) float band[ROWS][BAND];
    alignas(64) float sums[ROWS][DIM];
    float most[ROWS], total[ROWS];
};

// Take queries i0 .. i0 + ROWS - 1; past the end the last one is repeated.
static void begin(Tile &tile, const float *q, const float *u, const float *w, float scale, int64_t i0, int64_t tokens) {
    for (int row = 0; row < ROWS; row++) {
        const float *query = q + std::min(i0 + row, tokens - 1) * DIM;
        for (int d = 0; d < DIM; d++) {
            tile.content[row][d] = (query[d] + u[d]) * scale;
            tile.relative[row][d] = (query[d] + w[d]) * scale;
        }
        std::fill(tile.sums[row], tile.sums[row] + DIM, 0.0f);
        tile.most[row] = LOWEST;
        tile.total[row] = 0.0f;
    }
}

// `offsets` points at the band's first column: the last query with the first key.
static void score(Tile &tile, const float *keys, const float *offsets, int64_t offset_stride) {
    for (int x = 0; x < KEYS; x += WIDE) dots<VECTORS>(tile.content[0], keys + x, KEYS, &tile.scores[0][x], KEYS);
    int x = 0;
    for (; x + WIDE <= BAND; x += WIDE)
        dots<VECTORS>(tile.relative[0], offsets + x, offset_stride, &tile.band[0][x], BAND);
    for (; x < BAND; x += LANES) dots<1>(tile.relative[0], offsets + x, offset_stride, &tile.band[0][x], BAND);
}

// Online softmax over `count` keys: weights of this tile, and earlier sums rescaled to the new maximum.
static void weigh(Tile &tile, int count) {
    for (int row = 0; row < ROWS; row++) {
        float *s = tile.scores[row];
        const float *skewed = tile.band[row] + ROWS - 1 - row;
        Vec most = broadcast(tile.most[row]);
        for (int x = 0; x < KEYS; x += LANES) store(s + x, load(s + x) + load(skewed + x));
        std::fill(s + count, s + KEYS, LOWEST);
        for (int x = 0; x < KEYS; x += LANES) most = larger(most, load(s + x));
        const float shift = largest(most);
        Vec total{};
        for (int x = 0; x < KEYS; x += LANES) {
            const Vec weight = exponential(load(s + x) - shift);
            store(s + x, weight);
            total += weight;
        }
        const float rescale = std::exp(tile.most[row] - shift);
        tile.most[row] = shift;
        tile.total[row] = tile.total[row] * rescale + sum(total);
        if (rescale != 1.0f)
            for (int d = 0; d < DIM; d += LANES) store(tile.sums[row] + d, load(tile.sums[row] + d) * rescale);
    }
}

static void add_values(Tile &tile, const float *v, int count) {
    for (int d = 0; d < DIM; d += WIDE) {
        Vec c[ROWS][VECTORS];
        for (int row = 0; row < ROWS; row++)
            for (int x = 0; x < VECTORS; x++) c[row][x] = load(tile.sums[row] + d + x * LANES);
        product<VECTORS, KEYS>(c, tile.scores[0], v + d, DIM, count);
        for (int row = 0; row < ROWS; row++)
            for (int x = 0; x < VECTORS; x++) store(tile.sums[row] + d + x * LANES, c[row][x]);
    }
}

static void finish(const Tile &tile, float *out, int count) {
    for (int row = 0; row < count; row++)
        for (int d = 0; d < DIM; d += LANES)
            store(out + row * DIM + d, load(tile.sums[row] + d) * (1.0f / tile.total[row]));
}

// Blocks of KEYS keys, each [channel][key]; the last one is filled up with zeros.
static void transpose_keys(const float *k, int64_t tokens, float *to) {
    for (int64_t j = 0; j < tokens; j += KEYS, to += KEYS * DIM) {
        if (tokens - j < KEYS) std::fill(to, to + KEYS * DIM, 0.0f);
        transpose(k + j * DIM, DIM, std::min<int64_t>(KEYS, tokens - j), DIM, to, KEYS);
    }
}

// Column c of the result is j - i = c - ROWS - (tokens - 1); zeros around, because edge tiles reach past the table.
static void transpose_offsets(const float *r, int64_t count, float *to, int64_t stride) {
    for (int d = 0; d < DIM; d++) {
        std::fill(to + d * stride, to + d * stride + ROWS, 0.0f);
        std::fill(to + d * stride + ROWS + count, to + (d + 1) * stride, 0.0f);
    }
    transpose(r + (count - 1) * DIM, -DIM, count, DIM, to + ROWS, stride);
}

extern "C" void relpos_txl_fwd(const float *q, const float *k, const float *v, const float *r, const float *u,
                               const float *w, float scale, float *out, int64_t heads, int64_t tokens) {
    const int64_t blocks = (tokens + KEYS - 1) / KEYS;
    // An odd number of cache lines a row, so that the channels of one column do not fall into one cache set.
    const int64_t stride = (2 * tokens + ROWS + BAND + KEYS + 31) / 32 * 32 + 16;
    static std::vector<float> scratch;  // kept between calls: fresh pages would cost a fault each, every time
    scratch.resize((blocks * KEYS + stride) * DIM);
    float *keys = scratch.data(), *offsets = keys + blocks * KEYS * DIM;
    Tile tile;
    for (int64_t h = 0; h < heads; h++, q += tokens * DIM, v += tokens * DIM, out += tokens * DIM) {
        transpose_keys(k + h * tokens * DIM, tokens, keys);
        transpose_offsets(r + h * (2 * tokens - 1) * DIM, 2 * tokens - 1, offsets, stride);
        for (int64_t i0 = 0; i0 < tokens; i0 += ROWS) {
            begin(tile, q, u + h * DIM, w + h * DIM, scale, i0, tokens);
            for (int64_t j0 = 0; j0 < tokens; j0 += KEYS) {
                const int count = static_cast<int>(std::min<int64_t>(KEYS, tokens - j0));
                const int64_t first = j0 - (i0 + ROWS - 1) + (tokens - 1) + ROWS;
                score(tile, keys + j0 * DIM, offsets + first, stride);
                weigh(tile, count);
                add_values(tile, v + j0 * DIM, count);
            }
            finish(tile, out + i0 * DIM, static_cast<int>(std::min<int64_t>(ROWS, tokens - i0)));
        }
    }
}
