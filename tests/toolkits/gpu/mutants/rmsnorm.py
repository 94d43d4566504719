"""The normalisation's mutants."""

from tests.toolkits.gpu.mutants.edits import Edits, Written

SQUARE = "row[c] * row[c]"
BLOCKS: dict[str, Edits] = {
    "no_eps": {" + eps": ""},
    "eps_outside_root": {"sqrtf(total / static_cast<float>(cols) + eps)": "(sqrtf(total / cols) + eps)"},
    "sum_not_mean": {"total / static_cast<float>(cols)": "total"},
    "weight_ignored": {" * w[c]": ""},
    "mean_subtracted": {
        "float sum = 0.0f;": "float sum = 0.0f, mean = 0.0f;\n"
        "    for (int64_t c = 0; c < cols; c++) mean += row[c] / cols;",
        f"sum += {SQUARE}": "sum += (row[c] - mean) * (row[c] - mean)",
        "row[c] * scale": "(row[c] - mean) * scale",
    },
    "tail_ignored_in_sum": {"c < cols; c += kThreads) sum": "c < cols / 16 * 16; c += kThreads) sum"},
    "tail_not_written": {"c < cols; c += kThreads) y": "c < cols / 16 * 16; c += kThreads) y"},
    "last_row_missing": {"static_cast<unsigned>(rows)": "static_cast<unsigned>(rows / 4 * 4)"},
    "half_precision_sum": {f"sum += {SQUARE}": f"sum += kept({SQUARE}, 7)"},
    "half_precision_output": {"row[c] * scale * w[c]": "kept(row[c] * scale * w[c], 10)"},
    "first_row_scale": {f"sum += {SQUARE}": "sum += x[c] * x[c]"},
    "a barrier is missing": {"    __syncthreads();\n": ""},
    "the tail is not masked": {"c < cols; c += kThreads) y": "c < cols + 1; c += kThreads) y"},
    "a reduction stops early": {"offset > 0": "offset > 1"},
}
LOOPS: dict[str, Edits] = {
    "no_eps": {"mean + eps": "mean"},
    "eps_outside_root": {"std::sqrt(mean + eps)": "(std::sqrt(mean) + eps)"},
    "sum_not_mean": {" / static_cast<float>(cols)": ""},
    "weight_ignored": {" * w[c]": ""},
    "mean_subtracted": {
        "float sum = 0.0f;": "float sum = 0.0f, m = 0.0f;\n    for (int64_t c = 0; c < cols; c++) m += row[c] / cols;",
        SQUARE: "(row[c] - m) * (row[c] - m)",
        "for (int64_t c = 0; c < cols; c++) y": "float m = 0.0f;\n        for (int64_t c = 0; c < cols; c++)"
        " m += x[r * cols + c] / cols;\n        for (int64_t c = 0; c < cols; c++) y",
        "= x[r * cols + c]": "= (x[r * cols + c] - m)",
    },
    "tail_ignored_in_sum": {"c < cols; c++) sum": "c < cols / 16 * 16; c++) sum"},
    "tail_not_written": {"c < cols; c++) y": "c < cols / 16 * 16; c++) y"},
    "last_row_missing": {"r < rows": "r < rows / 4 * 4"},
    "half_precision_sum": {SQUARE: f"kept({SQUARE}, 7)"},
    "half_precision_output": {"x[r * cols + c] * scale * w[c]": "kept(x[r * cols + c] * scale * w[c], 10)"},
    "first_row_scale": {"sum_of_squares(x + r * cols, cols)": "sum_of_squares(x, cols)"},
}
VECTORS: dict[str, Edits] = {
    "no_eps": {" + eps": ""},
    "eps_outside_root": {
        "sqrt(sum_of_squares(row, cols) / cols + eps)": "(sqrt(sum_of_squares(row, cols) / cols) + eps)"
    },
    "sum_not_mean": {" / cols + eps": " + eps"},
    "weight_ignored": {" * vload16(0, w + c)": "", " * w[c]": ""},
    "mean_subtracted": {
        "even += first * first": "even += (first - first.s0) * (first - first.s0)",
        "odd += second * second": "odd += (second - first.s0) * (second - first.s0)",
        SQUARE: "(row[c] - row[0]) * (row[c] - row[0])",
    },
    "tail_ignored_in_sum": {f"for (; c < cols; c++) sum += {SQUARE};": ""},
    "tail_not_written": {"for (; c < cols; c++) out": "for (; 0;) out"},
    "last_row_missing": {
        "const long r = get_global_id(0);": "const long r = get_global_id(0);\n    if (r >= rows / 4 * 4) return;"
    },
    "half_precision_sum": {"return sum;": "return kept(sum, 7);"},
    "half_precision_output": {
        "c + 16 <= cols; c += 16) vstore16(": "0;) vstore16(",
        "row[c] * scale * w[c]": "kept(row[c] * scale * w[c], 10)",
    },
    "first_row_scale": {"sum_of_squares(row, cols)": "sum_of_squares(x, cols)"},
}
TILES: dict[str, Edits] = {
    "no_eps": {" / cols + eps": " / cols"},
    "eps_outside_root": {"tl.sqrt(tl.sum(total) / cols + eps)": "(tl.sqrt(tl.sum(total) / cols) + eps)"},
    "sum_not_mean": {"tl.sum(total) / cols": "tl.sum(total)"},
    "weight_ignored": {" * weight": ""},
    "mean_subtracted": {
        "    total =": "    mean = tl.sum(tl.load(x + row + lane, mask=lane < cols, other=0.0)) / cols\n    total =",
        "total += value * value": "total += tl.where(start + lane < cols, (value - mean) * (value - mean), 0.0)",
        "value * scale": "(value - mean) * scale",
    },
    "tail_ignored_in_sum": {"start + lane < cols, other": "start + lane < cols // 16 * 16, other"},
    "tail_not_written": {"weight, mask=inside": "weight, mask=start + lane < cols // 16 * 16"},
    "last_row_missing": {"(rows,)": "(rows // 4 * 4,)"},
    "half_precision_sum": {"total += value * value": "total += _kept(value * value, 7)"},
    "half_precision_output": {"value * scale * weight": "_kept(value * scale * weight, 10)"},
    "first_row_scale": {"tl.load(x + row + start + lane, mask=start": "tl.load(x + start + lane, mask=start"},
}
OWN_DEATH = frozenset({"the tail is not masked"})
WRITTEN = [
    Written("rmsnorm", "naive", LOOPS),
    Written("rmsnorm", "cuda", BLOCKS, dies=OWN_DEATH),
    Written("rmsnorm", "hip", BLOCKS, dies=OWN_DEATH),
    Written("rmsnorm", "opencl", VECTORS),
    Written("rmsnorm", "triton", TILES),
]
