// Scores |c|^2 - 2 x.c in a register tile of ROWS points times VECTORS vectors of centroids; no score is stored.
#include "task.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

static_assert(ROWS * VECTORS <= 32, "the tile ROWS * VECTORS must fit in the vector registers");

#if defined(__AVX512F__)
constexpr int WIDEST = 64;
#elif defined(__AVX__)
constexpr int WIDEST = 32;
#else
constexpr int WIDEST = 16;
#endif
constexpr int BYTES = std::min(VECTOR_BYTES, WIDEST);
constexpr int LANES = BYTES / static_cast<int>(sizeof(float));
constexpr int WIDTH = VECTORS * LANES;
constexpr int TURNS = UNROLL;
constexpr float NEVER = std::numeric_limits<float>::max();

template <int SIZE>
struct Lane {
    typedef float Score __attribute__((vector_size(SIZE)));
    typedef int32_t Id __attribute__((vector_size(SIZE)));
};
using Vector = Lane<BYTES>::Score;
using Index = Lane<BYTES>::Id;
using Tile = Vector[ROWS][VECTORS];

static inline Vector load(const float* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
}

// One panel: a line of WIDTH squared norms, then `dim` lines of WIDTH values of -2 c. Padding can never win.
static void pack_panel(float* panel, const float* c, int64_t count, int64_t dim) {
    for (int64_t j = 0; j < WIDTH; j++) {
        float norm = j < count ? 0.0f : NEVER;
        for (int64_t d = 0; d < dim; d++) {
            const float value = j < count ? c[j * dim + d] : 0.0f;
            norm += value * value;
            panel[(d + 1) * WIDTH + j] = -2.0f * value;
        }
        panel[j] = norm;
    }
}

static inline void multiply(Tile& tile, const float* const* points, const float* lines, int64_t dim) {
#pragma GCC unroll TURNS
    for (int64_t d = 0; d < dim; d++) {
        Vector line[VECTORS];
        for (int j = 0; j < VECTORS; j++) line[j] = load(lines + d * WIDTH + j * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < VECTORS; j++) tile[i][j] += points[i][d] * line[j];
    }
}

// The id that goes with the lowest of all lanes: halves are compared until four are left.
template <int SIZE>
static inline int32_t winner(const typename Lane<SIZE>::Score& score, const typename Lane<SIZE>::Id& id) {
    if constexpr (SIZE == 16) {
        const int left = score[1] < score[0] ? 1 : 0;
        const int right = score[3] < score[2] ? 3 : 2;
        return id[score[right] < score[left] ? right : left];
    } else {
        typename Lane<SIZE / 2>::Score scores[2];
        typename Lane<SIZE / 2>::Id ids[2];
        std::memcpy(scores, &score, SIZE);
        std::memcpy(ids, &id, SIZE);
        const auto second = scores[1] < scores[0];
        return winner<SIZE / 2>(second ? scores[1] : scores[0], second ? ids[1] : ids[0]);
    }
}

// The running minimum of ROWS points, one candidate a lane.
struct Minimum {
    Vector score[ROWS];
    Index id[ROWS];

    Minimum() {
        for (int i = 0; i < ROWS; i++) {
            score[i] = Vector{} + NEVER;
            id[i] = Index{};
        }
    }

    void fold(const Tile& tile, Index ids) {
        for (int j = 0; j < VECTORS; j++, ids += LANES) {
#pragma GCC unroll 16
            for (int i = 0; i < ROWS; i++) {
                id[i] = tile[i][j] < score[i] ? ids : id[i];
                score[i] = tile[i][j] < score[i] ? tile[i][j] : score[i];
            }
        }
    }
};

// Ids of `count` points; the missing ones of a last tile repeat its last point.
static void assign_tile(const float* x, int32_t* ids, int count, const float* panels, int64_t panel_count,
                        int64_t dim) {
    const float* points[ROWS];
    for (int i = 0; i < ROWS; i++) points[i] = x + std::min(i, count - 1) * dim;
    Index lanes;
    for (int lane = 0; lane < LANES; lane++) lanes[lane] = lane;
    Minimum minimum;
    for (int64_t p = 0; p < panel_count; p++) {
        const float* panel = panels + p * WIDTH * (dim + 1);
        Tile tile;
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < VECTORS; j++) tile[i][j] = load(panel + j * LANES);
        multiply(tile, points, panel + WIDTH, dim);
        minimum.fold(tile, lanes + static_cast<int32_t>(p * WIDTH));
    }
    for (int i = 0; i < count; i++) ids[i] = winner<BYTES>(minimum.score[i], minimum.id[i]);
}

static std::unique_ptr<float[], decltype(&std::free)> aligned_floats(int64_t count) {
    const size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
    return {static_cast<float*>(std::aligned_alloc(64, bytes)), &std::free};
}

extern "C" void kmeans_assign(const float* x, const float* c, const float*, int32_t* ids, int64_t batch,
                              int64_t points, int64_t centroids, int64_t dim) {
    const int64_t panel_count = (centroids + WIDTH - 1) / WIDTH;
    const auto panels = aligned_floats(panel_count * WIDTH * (dim + 1));
    for (int64_t b = 0; b < batch; b++) {
        for (int64_t p = 0; p < panel_count; p++)
            pack_panel(panels.get() + p * WIDTH * (dim + 1), c + (b * centroids + p * WIDTH) * dim,
                       centroids - p * WIDTH, dim);
        for (int64_t n = 0; n < points; n += ROWS) {
            const int count = static_cast<int>(std::min<int64_t>(ROWS, points - n));
            assign_tile(x + (b * points + n) * dim, ids + b * points + n, count, panels.get(), panel_count, dim);
        }
    }
}
