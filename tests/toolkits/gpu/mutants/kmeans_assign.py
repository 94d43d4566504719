"""The assignment's mutants."""

from tests.toolkits.gpu.mutants.edits import Edits, Written

SQUARED, LOW = "difference * difference", "kept(tile[k][d], 7)"


def _groups(tile: str, number: str, mine: str, batch: str, barrier: str) -> dict[str, Edits]:
    """Of a group that shares a tile of centroids: the same lines in three languages, but for these names."""
    return {
        "pad_zero": {"first + k < centroids && ": ""},
        "drop_tail": {"first < centroids; first": f"first + {tile} <= centroids; first"},
        "no_norm": {SQUARED: "-value * tile[k][d]"},
        "norm_low_precision": {SQUARED: f"{LOW} * {LOW} - 2 * value * tile[k][d]"},
        "dot_low_precision": {SQUARED: f"tile[k][d] * tile[k][d] - 2 * kept(value, 7) * {LOW}"},
        "minimum_starts_at_zero": {"best = INFINITY": "best = 0.0f"},
        "index_within_tile": {number: "id = k"},
        "last_point_missing": {mine: "mine = point < points / 4 * 4"},
        "centroids_of_first_batch": {f"c + {batch} * centroids * dim": "c"},
        "a tile is read before it is there": {
            f"            {barrier}\n            for (int d": "            for (int d"
        },
    }


DEVICE = _groups(
    "kCentroids", "id = static_cast<int32_t>(first + k)", "mine = point < points", "blockIdx.y", "__syncthreads();"
)
OPENCL = _groups("CENTROIDS", "id = (int)(first + k)", "mine = point < points", "b", "barrier(CLK_LOCAL_MEM_FENCE);")
HIP = {
    **DEVICE,
    "a tile is read before it is there": {"start, dim);\n            __syncthreads();": "start, dim);"},
}
LOOPS: dict[str, Edits] = {
    "pad_zero": {
        "k < centroids": "k < (centroids + 7) / 8 * 8",
        "centroid + k * dim": "k < centroids ? centroid + k * dim : std::vector<float>(dim).data()",
    },
    "drop_tail": {"k < centroids": "k < centroids / 8 * 8"},
    "no_norm": {SQUARED: "-point[d] * centroid[d]"},
    "norm_low_precision": {SQUARED: "kept(centroid[d], 7) * kept(centroid[d], 7) - 2 * point[d] * centroid[d]"},
    "dot_low_precision": {SQUARED: "centroid[d] * centroid[d] - 2 * kept(point[d], 7) * kept(centroid[d], 7)"},
    "minimum_starts_at_zero": {"std::numeric_limits<float>::infinity()": "0.0f"},
    "index_within_tile": {"static_cast<int32_t>(k)": "static_cast<int32_t>(k % 64)"},
    "last_point_missing": {"n < points": "n < points / 4 * 4"},
    "centroids_of_first_batch": {"c + b * centroids * dim": "c"},
}
TILES: dict[str, Edits] = {
    "pad_zero": {'tl.where(k < centroids, norm - 2 * product, float("inf"))': "norm - 2 * product"},
    "drop_tail": {
        "range(0, centroids, CENTROIDS)": "range(0, centroids // 8 * 8, CENTROIDS)",
        "k < centroids, norm": "k < centroids // 8 * 8, norm",
    },
    "no_norm": {"norm - 2 * product": "-product"},
    "norm_low_precision": {"tl.sum(columns * columns, 0)": "tl.sum(_kept(columns, 7) * _kept(columns, 7), 0)"},
    "dot_low_precision": {"tl.dot(rows, columns,": "tl.dot(_kept(rows, 7), _kept(columns, 7),"},
    "minimum_starts_at_zero": {'tl.full([POINTS], float("inf"), tl.float32)': "tl.zeros([POINTS], tl.float32)"},
    "index_within_tile": {"first + place": "place"},
    "last_point_missing": {"id, mask=point < points": "id, mask=point < points // 4 * 4"},
    "centroids_of_first_batch": {"    c += b * centroids * dim\n": ""},
}
WRITTEN = [
    Written("kmeans_assign", "naive", LOOPS),
    Written("kmeans_assign", "cuda", DEVICE),
    Written("kmeans_assign", "hip", HIP),
    Written("kmeans_assign", "opencl", OPENCL),
    Written("kmeans_assign", "triton", TILES),
]
