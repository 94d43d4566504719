// A work item a point; the group shares a tile of centroids, so each centroid is read once a group.
#define THREADS 64
#define CENTROIDS 8  // of a tile
#define DIM 64       // of a piece of the points' length

__kernel void kmeans_assign(__global const float* x, __global const float* c, __global const float* x_sq,
                            __global int* ids, long batch, long points, long centroids, long dim) {
    __local float tile[CENTROIDS][DIM];
    const int thread = get_local_id(0);
    const long point = get_global_id(0), b = get_global_id(1);
    const bool mine = point < points;
    __global const float* own = x + (b * points + (mine ? point : 0)) * dim;
    __global const float* all = c + b * centroids * dim;
    float best = INFINITY;
    int id = 0;
    for (long first = 0; first < centroids; first += CENTROIDS) {
        float distance[CENTROIDS] = {0};
        for (long start = 0; start < dim; start += DIM) {
            const int length = (int)min(dim - start, (long)DIM);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int at = thread; at < CENTROIDS * DIM; at += THREADS) {
                const long k = first + at / DIM;
                const int d = at % DIM;
                tile[at / DIM][d] = k < centroids && d < length ? all[k * dim + start + d] : 0.0f;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int d = 0; d < length; d++) {
                const float value = own[start + d];
                for (int k = 0; k < CENTROIDS; k++) {
                    const float difference = value - tile[k][d];
                    distance[k] += difference * difference;
                }
            }
        }
        for (int k = 0; k < CENTROIDS; k++) {
            if (first + k < centroids && distance[k] < best) {
                best = distance[k];
                id = (int)(first + k);
            }
        }
    }
    if (mine) ids[b * points + point] = id;
}
