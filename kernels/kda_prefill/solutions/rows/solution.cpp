// Kimi Delta Attention prefill, a block of state rows in registers: rows never mix, so all tokens can stream past it.
#include "lanes.h"
#include "task.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

// One head's tokens, made ready: normalised keys and scaled queries, decays, strengths.
template <int DIM>
struct Prepared {
    alignas(64) float query[TOKENS][DIM];
    alignas(64) float key[TOKENS][DIM];
    alignas(64) float decay[TOKENS][DIM];
    float strength[TOKENS];
    float key_dot_query[TOKENS];
};

template <int DIM>
static float dot(const float *a, const float *b) {
    Vec total{};
    for (int i = 0; i < DIM; i += LANES) total += load(a + i) * load(b + i);
    return sum(total);
}

template <int DIM>
static void prepare(Prepared<DIM> &to, int count, const float *q, const float *k, const float *g, const float *beta,
                    float slope, const float *dt_bias, float scale, int64_t heads) {
    for (int t = 0; t < count; t++, q += heads * DIM, k += heads * DIM, g += heads * DIM, beta += heads) {
        const float query_norm = scale / std::sqrt(dot<DIM>(q, q) + 1e-6f);
        const float key_norm = 1.0f / std::sqrt(dot<DIM>(k, k) + 1e-6f);
        for (int i = 0; i < DIM; i += LANES) {
            store(to.query[t] + i, load(q + i) * query_norm);
            store(to.key[t] + i, load(k + i) * key_norm);
            store(to.decay[t] + i, exponential(-5.0f * sigmoid(slope * (load(g + i) + load(dt_bias + i)))));
        }
        to.strength[t] = 1.0f / (1.0f + std::exp(-*beta));
        to.key_dot_query[t] = dot<DIM>(to.key[t], to.query[t]);
    }
}

// Sums over the lanes of each of COUNT vectors.
template <int COUNT>
static inline void sum_each(const Vec *vectors, float *to) {
    int r = 0;
    for (; r + 4 <= COUNT; r += 4) {
        const Quad four = sums(vectors[r], vectors[r + 1], vectors[r + 2], vectors[r + 3]);
        std::memcpy(to + r, &four, sizeof four);
    }
    for (; r < COUNT; r++) to[r] = sum(vectors[r]);
}

// The tokens of `block` pass BLOCK_ROWS rows of the state; v and out point at the first row's first token.
template <int DIM, int BLOCK_ROWS>
static void stream(const Prepared<DIM> &block, int count, const float *v, float *out, int64_t stride, float *state) {
    constexpr int PARTS = DIM / LANES;
    Vec s[BLOCK_ROWS][PARTS];
    for (int r = 0; r < BLOCK_ROWS; r++)
        for (int c = 0; c < PARTS; c++) s[r][c] = load(state + r * DIM + c * LANES);
    for (int t = 0; t < count; t++, v += stride, out += stride) {
        const float *query = block.query[t], *key = block.key[t], *decay = block.decay[t];
        Vec known_parts[BLOCK_ROWS]{}, read_parts[BLOCK_ROWS]{};
        float known[BLOCK_ROWS], read[BLOCK_ROWS], update[BLOCK_ROWS];
        for (int c = 0; c < PARTS; c++) {
            const Vec a = load(decay + c * LANES), x = load(key + c * LANES), y = load(query + c * LANES);
            for (int r = 0; r < BLOCK_ROWS; r++) {
                s[r][c] *= a;
                known_parts[r] += s[r][c] * x;
                if constexpr (READ_EARLY != 0) read_parts[r] += s[r][c] * y;
            }
        }
        sum_each<BLOCK_ROWS>(known_parts, known);
        for (int r = 0; r < BLOCK_ROWS; r++) update[r] = block.strength[t] * (v[r] - known[r]);
        for (int c = 0; c < PARTS; c++) {
            const Vec x = load(key + c * LANES), y = load(query + c * LANES);
            for (int r = 0; r < BLOCK_ROWS; r++) {
                s[r][c] += update[r] * x;
                if constexpr (READ_EARLY == 0) read_parts[r] += s[r][c] * y;
            }
        }
        sum_each<BLOCK_ROWS>(read_parts, read);
        const float share = READ_EARLY != 0 ? block.key_dot_query[t] : 0.0f;
        for (int r = 0; r < BLOCK_ROWS; r++) out[r] = read[r] + share * update[r];
    }
    for (int r = 0; r < BLOCK_ROWS; r++)
        for (int c = 0; c < PARTS; c++) store(state + r * DIM + c * LANES, s[r][c]);
}

template <int DIM>
static void run(const float *q, const float *k, const float *v, const float *g, const float *beta, const float *A_log,
                const float *dt_bias, const int64_t *cu_seqlens, float scale, float *out, float *state, int64_t heads,
                int64_t sequences) {
    constexpr int BLOCK_ROWS = std::max(1, ROWS * 64 / DIM);
    Prepared<DIM> block;
    for (int64_t n = 0; n < sequences; n++)
        for (int64_t h = 0; h < heads; h++, state += DIM * DIM)
            for (int64_t t = cu_seqlens[n]; t < cu_seqlens[n + 1]; t += TOKENS) {
                const int count = static_cast<int>(std::min<int64_t>(TOKENS, cu_seqlens[n + 1] - t));
                const int64_t at = (t * heads + h) * DIM;
                prepare<DIM>(block, count, q + at, k + at, g + at, beta + t * heads + h, std::exp(A_log[h]),
                             dt_bias + h * DIM, scale, heads);
                for (int j = 0; j < DIM; j += BLOCK_ROWS)
                    stream<DIM, BLOCK_ROWS>(block, count, v + at + j, out + at + j, heads * DIM, state + j * DIM);
            }
}

extern "C" void kda_prefill(const float *q, const float *k, const float *v, const float *g, const float *beta,
                            const float *A_log, const float *dt_bias, const int64_t *cu_seqlens,
                            const float *initial_state, float scale, float *out, float *final_state, int64_t,
                            int64_t heads, int64_t dim, int64_t sequences) {
    std::memcpy(final_state, initial_state, sizeof(float) * sequences * heads * dim * dim);
    const auto of_size = dim == 128 ? run<128> : run<64>;
    of_size(q, k, v, g, beta, A_log, dt_bias, cu_seqlens, scale, out, final_state, heads, sequences);
}
