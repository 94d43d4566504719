// Scores |c|^2 - 2 x.c of POINTS points against TILE centroids at a time, vectorised over the centroids.
#include "task.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

static_assert(POINTS * TILE <= 1024, "the score buffer POINTS * TILE must stay well inside the first-level cache");

constexpr float NEVER = std::numeric_limits<float>::max();

// The centroids of one batch entry as tiles [dim][TILE] of -2 c, and their squared norms; padding can never win.
struct Centroids {
    std::vector<float> tiles;
    std::vector<float> norms;
    int64_t dim;

    Centroids(int64_t centroids, int64_t dim)
        : tiles((centroids + TILE - 1) / TILE * TILE * dim), norms((centroids + TILE - 1) / TILE * TILE), dim(dim) {}

    int64_t padded() const { return static_cast<int64_t>(norms.size()); }
    const float* tile(int64_t first) const { return tiles.data() + first * dim; }

    void load(const float* c, int64_t centroids) {
        std::fill(norms.begin(), norms.end(), NEVER);
        for (int64_t k = 0; k < centroids; k++) {
            float* column = tiles.data() + k / TILE * TILE * dim + k % TILE;
            norms[k] = 0.0f;
            for (int64_t d = 0; d < dim; d++) {
                const float value = c[k * dim + d];
                norms[k] += value * value;
                column[d * TILE] = -2.0f * value;
            }
        }
    }
};

// scores[p] += the products of COUNT coordinates of point p with COUNT lines of a tile.
template <int COUNT>
static inline void add_coordinates(float (&scores)[POINTS][TILE], const float* const* points, int64_t d,
                                   const float* __restrict line) {
    for (int p = 0; p < POINTS; p++) {
        float* __restrict row = scores[p];
        const float* point = points[p] + d;
#pragma omp simd simdlen(LANES)
        for (int j = 0; j < TILE; j++) {
            float sum = row[j];
            for (int u = 0; u < COUNT; u++) sum += point[u] * line[u * TILE + j];
            row[j] = sum;
        }
    }
}

static void score_tile(float (&scores)[POINTS][TILE], const float* const* points, const float* tile,
                       const float* norms, int64_t dim) {
    for (int p = 0; p < POINTS; p++) std::memcpy(scores[p], norms, sizeof scores[p]);
    int64_t d = 0;
    for (; d + DIMS <= dim; d += DIMS) add_coordinates<DIMS>(scores, points, d, tile + d * TILE);
    for (; d < dim; d++) add_coordinates<1>(scores, points, d, tile + d * TILE);
}

static inline float minimum(const float (&scores)[TILE]) {
    float best = scores[0];
#pragma omp simd simdlen(LANES) reduction(min : best)
    for (int j = 0; j < TILE; j++) best = std::min(best, scores[j]);
    return best;
}

// Ids of `count` points; the missing ones of a last block repeat its last point.
static void assign_block(const float* x, int32_t* ids, int count, const Centroids& centroids) {
    alignas(64) float scores[POINTS][TILE];
    const float* points[POINTS];
    float best[POINTS];
    int32_t id[POINTS] = {};
    for (int p = 0; p < POINTS; p++) {
        points[p] = x + std::min(p, count - 1) * centroids.dim;
        best[p] = NEVER;
    }
    for (int64_t first = 0; first < centroids.padded(); first += TILE) {
        score_tile(scores, points, centroids.tile(first), centroids.norms.data() + first, centroids.dim);
        for (int p = 0; p < POINTS; p++) {
            const float lowest = minimum(scores[p]);
            if (lowest < best[p]) {
                best[p] = lowest;
                id[p] = static_cast<int32_t>(first + (std::find(scores[p], scores[p] + TILE, lowest) - scores[p]));
            }
        }
    }
    std::copy(id, id + count, ids);
}

extern "C" void kmeans_assign(const float* x, const float* c, const float*, int32_t* ids, int64_t batch,
                              int64_t points, int64_t centroids, int64_t dim) {
    Centroids packed(centroids, dim);
    for (int64_t b = 0; b < batch; b++) {
        packed.load(c + b * centroids * dim, centroids);
        for (int64_t n = 0; n < points; n += POINTS) {
            const int count = static_cast<int>(std::min<int64_t>(POINTS, points - n));
            assign_block(x + (b * points + n) * dim, ids + b * points + n, count, packed);
        }
    }
}
