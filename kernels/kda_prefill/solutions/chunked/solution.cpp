// Kimi Delta Attention prefill in chunks: a triangular system and a few small matrix products for every CHUNK tokens.
//
// With E the running product of decays in the chunk, K+ = k E, K- = k / E, Q+ = scale q E, and S the state before:
//   (I + strict(b K+ K-^T)) U = b (V - K+ S),   out = Q+ S + lower(Q+ K-^T) U,   S <- E_last (S + K-^T U).
#include "lanes.h"
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

static_assert(CHUNK * 5 < 87, "exp(5 * CHUNK) overflows float32: choose a CHUNK of at most 17");

constexpr int STACKED = 2 * CHUNK;  // rows of K+, then rows of Q+

template <int DIM>
struct Work {
    alignas(64) float left[STACKED][DIM];      // K+ over Q+
    alignas(64) float key_minus[DIM][CHUNK];   // K-^T
    alignas(64) float scores[STACKED][CHUNK];  // K+ K-^T over Q+ K-^T
    alignas(64) float from_state[STACKED][DIM];
    alignas(64) float update[CHUNK][DIM];  // U
    alignas(64) float last[DIM];           // E_last
    alignas(64) float state[DIM][DIM];     // [key channel, value channel]
    float strength[CHUNK];
};

// c[ROW_COUNT][VECTORS] += a b over `depth` terms; element (r, d) of a lies at a[r * a_row + d * a_term].
template <int ROW_COUNT, int VECTORS>
static inline __attribute__((always_inline)) void product(Vec (&c)[ROW_COUNT][VECTORS], const float *a, int a_row,
                                                          int a_term, const float *b, int b_row, int depth) {
    for (int d = 0; d < depth; d++) {
        Vec line[VECTORS];
        for (int x = 0; x < VECTORS; x++) line[x] = load(b + d * b_row + x * LANES);
#pragma GCC unroll 16
        for (int r = 0; r < ROW_COUNT; r++)
#pragma GCC unroll 16
            for (int x = 0; x < VECTORS; x++) c[r][x] += a[r * a_row + d * a_term] * line[x];
    }
}

template <int DIM>
static float inverse_norm(const float *x) {
    Vec total{};
    for (int i = 0; i < DIM; i += LANES) total += load(x + i) * load(x + i);
    return 1.0f / std::sqrt(sum(total) + 1e-6f);
}

// Fill K+, Q+, K-, E_last and the strengths; tokens past `count` change nothing (decay 1, strength 0).
template <int DIM>
static void prepare(Work<DIM> &w, int count, const float *q, const float *k, const float *g, const float *beta,
                    float slope, const float *dt_bias, float scale, int64_t heads) {
    for (int i = 0; i < DIM; i++) w.last[i] = 1.0f;
    for (int t = 0; t < CHUNK; t++) w.strength[t] = t < count ? 1.0f / (1.0f + std::exp(-beta[t * heads])) : 0.0f;
    for (int t = 0; t < count; t++, q += heads * DIM, k += heads * DIM, g += heads * DIM) {
        const float query_norm = scale * inverse_norm<DIM>(q), key_norm = inverse_norm<DIM>(k);
        for (int i = 0; i < DIM; i += LANES) {
            const Vec decay = exponential(-5.0f * sigmoid(slope * (load(g + i) + load(dt_bias + i))));
            const Vec product_so_far = load(w.last + i) * decay, key = load(k + i) * key_norm;
            const Vec minus = key / product_so_far;
            store(w.last + i, product_so_far);
            store(w.left[t] + i, key * product_so_far);
            store(w.left[CHUNK + t] + i, load(q + i) * query_norm * product_so_far);
            for (int lane = 0; lane < LANES; lane++) w.key_minus[i + lane][t] = minus[lane];
        }
    }
    for (int t = count; t < CHUNK; t++) {
        std::memset(w.left[t], 0, sizeof w.left[t]);
        std::memset(w.left[CHUNK + t], 0, sizeof w.left[t]);
        for (int i = 0; i < DIM; i++) w.key_minus[i][t] = 0.0f;
    }
}

template <int DIM>
static void score(Work<DIM> &w) {
    for (int i = 0; i < STACKED; i++) {
        float line[CHUNK]{};
        for (int d = 0; d < DIM; d++)
#pragma omp simd
            for (int j = 0; j < CHUNK; j++) line[j] += w.left[i][d] * w.key_minus[d][j];
        std::memcpy(w.scores[i], line, sizeof line);
    }
}

// [K+; Q+] S, tile by tile.
template <int DIM>
static void read_state(Work<DIM> &w) {
    constexpr int WIDE = TILE_VECTORS * LANES;
    for (int x = 0; x < DIM; x += WIDE)
        for (int i = 0; i < STACKED; i += TILE_ROWS) {
            Vec c[TILE_ROWS][TILE_VECTORS]{};
            product(c, w.left[i], DIM, 1, w.state[0] + x, DIM, DIM);
            for (int r = 0; r < TILE_ROWS; r++)
                for (int y = 0; y < TILE_VECTORS; y++) store(w.from_state[i + r] + x + y * LANES, c[r][y]);
        }
}

// Forward substitution for U, then the outputs; v and out hold `count` tokens.
template <int DIM>
static void solve(Work<DIM> &w, int count, const float *v, float *out, int64_t stride) {
    for (int i = 0; i < count; i++)
        for (int x = 0; x < DIM; x += LANES) {
            Vec wrong = load(v + i * stride + x) - load(w.from_state[i] + x);
            for (int j = 0; j < i; j++) wrong -= w.scores[i][j] * load(w.update[j] + x);
            const Vec update = w.strength[i] * wrong;
            store(w.update[i] + x, update);
            Vec read = load(w.from_state[CHUNK + i] + x) + w.scores[CHUNK + i][i] * update;
            for (int j = 0; j < i; j++) read += w.scores[CHUNK + i][j] * load(w.update[j] + x);
            store(out + i * stride + x, read);
        }
    for (int i = count; i < CHUNK; i++) std::memset(w.update[i], 0, sizeof w.update[i]);
}

template <int DIM>
static void write_state(Work<DIM> &w) {
    constexpr int WIDE = TILE_VECTORS * LANES;
    for (int d = 0; d < DIM; d += TILE_ROWS)
        for (int x = 0; x < DIM; x += WIDE) {
            Vec c[TILE_ROWS][TILE_VECTORS];
            for (int r = 0; r < TILE_ROWS; r++)
                for (int y = 0; y < TILE_VECTORS; y++) c[r][y] = load(w.state[d + r] + x + y * LANES);
            product(c, w.key_minus[d], CHUNK, 1, w.update[0] + x, DIM, CHUNK);
            for (int r = 0; r < TILE_ROWS; r++)
                for (int y = 0; y < TILE_VECTORS; y++) store(w.state[d + r] + x + y * LANES, c[r][y] * w.last[d + r]);
        }
}

template <int DIM>
static void transpose(const float *from, float *to) {
    constexpr int TILE = 16;
    for (int i = 0; i < DIM; i += TILE)
        for (int j = 0; j < DIM; j++)
            for (int r = 0; r < TILE; r++) to[j * DIM + i + r] = from[(i + r) * DIM + j];
}

template <int DIM>
static void run(const float *q, const float *k, const float *v, const float *g, const float *beta, const float *A_log,
                const float *dt_bias, const int64_t *cu_seqlens, const float *initial_state, float scale, float *out,
                float *final_state, int64_t heads, int64_t sequences) {
    static_assert(DIM % (TILE_VECTORS * LANES) == 0, "a tile of TILE_VECTORS vectors must divide the row");
    static_assert(STACKED % TILE_ROWS == 0, "TILE_ROWS must divide twice CHUNK");
    Work<DIM> w;
    for (int64_t n = 0; n < sequences; n++)
        for (int64_t h = 0; h < heads; h++) {
            transpose<DIM>(initial_state + (n * heads + h) * DIM * DIM, w.state[0]);
            for (int64_t t = cu_seqlens[n]; t < cu_seqlens[n + 1]; t += CHUNK) {
                const int count = static_cast<int>(std::min<int64_t>(CHUNK, cu_seqlens[n + 1] - t));
                const int64_t at = (t * heads + h) * DIM;
                prepare<DIM>(w, count, q + at, k + at, g + at, beta + t * heads + h, std::exp(A_log[h]),
                             dt_bias + h * DIM, scale, heads);
                score<DIM>(w);
                read_state<DIM>(w);
                solve<DIM>(w, count, v + at, out + at, heads * DIM);
                write_state<DIM>(w);
            }
            transpose<DIM>(w.state[0], final_state + (n * heads + h) * DIM * DIM);
        }
}

extern "C" void kda_prefill(const float *q, const float *k, const float *v, const float *g, const float *beta,
                            const float *A_log, const float *dt_bias, const int64_t *cu_seqlens,
                            const float *initial_state, float scale, float *out, float *final_state, int64_t,
                            int64_t heads, int64_t dim, int64_t sequences) {
    const auto of_size = dim == 128 ? run<128> : run<64>;
    of_size(q, k, v, g, beta, A_log, dt_bias, cu_seqlens, initial_state, scale, out, final_state, heads, sequences);
}
