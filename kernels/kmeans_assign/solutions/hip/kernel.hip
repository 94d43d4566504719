// A work item a point; the workgroup shares a tile of centroids in LDS, so each centroid is read once a workgroup.
#include "task.h"

constexpr int kThreads = 128;
constexpr int kCentroids = 8;  // of a tile
constexpr int kDim = 64;       // of a piece of the points' length: one wavefront loads one centroid's

__device__ void load_tile(float (*tile)[kDim], const float* all, int64_t first, int64_t centroids, int64_t start,
                          int64_t dim) {
    for (int at = threadIdx.x; at < kCentroids * kDim; at += kThreads) {
        const int64_t k = first + at / kDim, d = start + at % kDim;
        tile[at / kDim][at % kDim] = k < centroids && d < dim ? all[k * dim + d] : 0.0f;
    }
}

__global__ void __launch_bounds__(kThreads)
    nearest(const float* __restrict__ x, const float* __restrict__ c, int32_t* __restrict__ ids, int64_t points,
            int64_t centroids, int64_t dim) {
    __shared__ float tile[kCentroids][kDim];
    const int64_t point = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
    const bool mine = point < points;
    const float* own = x + (blockIdx.y * points + (mine ? point : 0)) * dim;
    const float* all = c + blockIdx.y * centroids * dim;
    float best = INFINITY;
    int32_t id = 0;
    for (int64_t first = 0; first < centroids; first += kCentroids) {
        float distance[kCentroids] = {};
        for (int64_t start = 0; start < dim; start += kDim) {
            __syncthreads();
            load_tile(tile, all, first, centroids, start, dim);
            __syncthreads();
            const int length = static_cast<int>(dim - start < kDim ? dim - start : kDim);
            for (int d = 0; d < length; d++) {
                const float value = own[start + d];
                for (int k = 0; k < kCentroids; k++) {
                    const float difference = value - tile[k][d];
                    distance[k] += difference * difference;
                }
            }
        }
        for (int k = 0; k < kCentroids; k++) {
            if (first + k < centroids && distance[k] < best) {
                best = distance[k];
                id = static_cast<int32_t>(first + k);
            }
        }
    }
    if (mine) ids[blockIdx.y * points + point] = id;
}

extern "C" void kmeans_assign(const float* x, const float* c, const float*, int32_t* ids, int64_t batch, int64_t points,
                              int64_t centroids, int64_t dim, hipStream_t stream) {
    const dim3 grid(static_cast<unsigned>((points + kThreads - 1) / kThreads), static_cast<unsigned>(batch));
    nearest<<<grid, kThreads, 0, stream>>>(x, c, ids, points, centroids, dim);
}
