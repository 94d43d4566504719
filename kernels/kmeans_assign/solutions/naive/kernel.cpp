#include "task.h"

#include <limits>

static float squared_distance(const float* point, const float* centroid, int64_t dim) {
    float sum = 0.0f;
    for (int64_t d = 0; d < dim; d++) {
        const float difference = point[d] - centroid[d];
        sum += difference * difference;
    }
    return sum;
}

static int32_t nearest(const float* point, const float* centroid, int64_t centroids, int64_t dim) {
    float best = std::numeric_limits<float>::infinity();
    int32_t id = 0;
    for (int64_t k = 0; k < centroids; k++) {
        const float distance = squared_distance(point, centroid + k * dim, dim);
        if (distance < best) {
            best = distance;
            id = static_cast<int32_t>(k);
        }
    }
    return id;
}

extern "C" void kmeans_assign(const float* x, const float* c, const float*, int32_t* ids, int64_t batch,
                              int64_t points, int64_t centroids, int64_t dim) {
    for (int64_t b = 0; b < batch; b++)
        for (int64_t n = 0; n < points; n++)
            ids[b * points + n] = nearest(x + (b * points + n) * dim, c + b * centroids * dim, centroids, dim);
}
