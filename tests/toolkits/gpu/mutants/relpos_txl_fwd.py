"""Relative attention's mutants."""

from tests.toolkits.gpu.mutants.edits import Edits, Written

ROW = "i - j + tokens - 1"
OFFSETS: dict[str, Edits] = {
    "offset_sign": {ROW: "j - i + tokens - 1"},
    "offset_one_late": {ROW: "(i - j + tokens < 2 * tokens - 1 ? i - j + tokens : 2 * tokens - 2)"},
    "offset_one_early": {ROW: "(i - j + tokens > 2 ? i - j + tokens - 2 : 0)"},
    "absolute_offset": {ROW: "(i > j ? i - j : j - i) + tokens - 1"},
    "not_shifted": {ROW: "j"},
}
GROUPS: dict[str, Edits] = {
    **OFFSETS,
    "no_u": {" + u[h * dim + t]": ""},
    "no_w": {" + w[h * dim + t]": ""},
    "biases_swapped": {"+ u[h": "+ w[h", "relative[t] = scale * (query + w[h": "relative[t] = scale * (query + u[h"},
    "biases_of_first_head": {"u[h * dim + t]": "u[t]", "w[h * dim + t]": "w[t]"},
    "offsets_not_scaled": {"relative[t] = scale * (": "relative[t] = ("},
    "no_scale": {"content[t] = scale * (": "content[t] = (", "relative[t] = scale * (": "relative[t] = ("},
    "scale_recomputed": {"content[t] = scale": "content[t] = 0.125f", "relative[t] = scale": "relative[t] = 0.125f"},
    "causal": {"if (j < tokens)": "if (j <= i)"},
    "no_maximum": {"largest = -INFINITY": "largest = 0.0f", "(top, weight[x]);": "(top, top);"},
    "sums_not_rescaled": {"sum *= rescale;": ""},
    "total_not_rescaled": {"total *= rescale;": ""},
    "not_normalised": {"sum / total": "sum"},
    "bfloat16_weights": {"(score - top);": "(score - top);\n        weight[t] = kept(weight[t], 7);"},
    "tail_keys_dropped": {"first < tokens; first": "first == 0 || first + dim <= tokens; first"},
    "tail_queries_dropped": {"= sum / total": "= i < tokens / 32 * 32 ? sum / total : 0.0f"},
    "padded_keys_count": {"score = -INFINITY": "score = 0.0f"},
}
CONTENT, RELATIVE = "(query[d] + u[h * dim + d])", "(query[d] + w[h * dim + d])"
LOOPS: dict[str, Edits] = {
    **OFFSETS,
    "no_u": {" + u[h * dim + d]": ""},
    "no_w": {" + w[h * dim + d]": ""},
    "biases_swapped": {f"{CONTENT} * key[d] + {RELATIVE}": f"{RELATIVE} * key[d] + {CONTENT}"},
    "biases_of_first_head": {"u[h * dim + d]": "u[d]", "w[h * dim + d]": "w[d]"},
    "offsets_not_scaled": {f"{RELATIVE} *": f"{RELATIVE} / scale *"},
    "no_scale": {"scale * score": "score"},
    "scale_recomputed": {"scale * score": "0.125f * score"},
    "causal": {"= scale * score": "= j > i ? -std::numeric_limits<float>::infinity() : scale * score"},
    "no_maximum": {"weight[j] - largest": "weight[j]"},
    "not_normalised": {"sum / total": "sum"},
    "bfloat16_weights": {"std::exp(weight[j] - largest)": "kept(std::exp(weight[j] - largest), 7)"},
    "tail_keys_dropped": {"j < tokens; j++) sum": "j < (tokens < 32 ? tokens : tokens / 32 * 32); j++) sum"},
    "tail_queries_dropped": {"= sum / total": "= i < tokens / 32 * 32 ? sum / total : 0.0f"},
}
UNTILED = "the naive solution has a whole row of scores and no tiles: written in `band`"
TILED: dict[str, Edits] = {
    "sums_not_rescaled": {"if (rescale != 1.0f)": "if (false)"},
    "total_not_rescaled": {"tile.total[row] * rescale": "tile.total[row]"},
    "padded_keys_count": {"s + KEYS, LOWEST);": "s + KEYS, 0.0f);"},
}
BAND_ROW = "tl.program_id(0) * TILE - first + column - TILE + tokens"
TILES: dict[str, Edits] = {
    "offset_sign": {BAND_ROW: "first + TILE - column + tokens - 2 - tl.program_id(0) * TILE"},
    "offset_one_late": {"- TILE + tokens\n": "- TILE + tokens + 1\n"},
    "offset_one_early": {"- TILE + tokens\n": "- TILE + tokens - 1\n"},
    "absolute_offset": {BAND_ROW: "tl.abs(tl.program_id(0) * TILE - first + column - TILE + 1) + tokens - 1"},
    "not_shifted": {"tl.gather(band, skew, 1)": "tl.gather(band, lane[None, :] + lane[:, None] * 0, 1)"},
    "no_u": {" + tl.load(u + h * DIM + d)": ""},
    "no_w": {" + tl.load(w + h * DIM + d)": ""},
    "biases_swapped": {
        "tl.load(u + h": "tl.load(w + h",
        "relative = scale * (query + tl.load(w": "relative = scale * (query + tl.load(u",
    },
    "biases_of_first_head": {"u + h * DIM + d": "u + d", "w + h * DIM + d": "w + d"},
    "offsets_not_scaled": {"relative = scale * (": "relative = ("},
    "no_scale": {"content = scale * (": "content = (", "relative = scale * (": "relative = ("},
    "scale_recomputed": {"content = scale * (": "content = 0.125 * (", "relative = scale * (": "relative = 0.125 * ("},
    "causal": {"tl.where(j < tokens,": "tl.where(j[None, :] <= i[:, None],"},
    "no_maximum": {
        'float("-inf"), tl.float32)': "0.0, tl.float32)",
        "tl.maximum(largest, tl.max(score, 1, keep_dims=True))": "largest",
    },
    "sums_not_rescaled": {"sums * rescale": "sums"},
    "total_not_rescaled": {"total * rescale": "total"},
    "not_normalised": {"sums / total": "sums"},
    "bfloat16_weights": {"weight = tl.exp(score - top)": "weight = _kept(tl.exp(score - top), 7)"},
    "tail_keys_dropped": {"range(0, tokens, TILE)": "range(0, tl.maximum(tokens // TILE, 1) * TILE, TILE)"},
    "tail_queries_dropped": {
        "sums / total, mask": "tl.where((i < tokens // TILE * TILE)[:, None], sums / total, 0.0), mask"
    },
    "padded_keys_count": {'tl.where(j < tokens, score, float("-inf"))': "tl.where(j < tokens, score, 0.0)"},
}
WRITTEN = [
    Written("relpos_txl_fwd", "naive", LOOPS, cannot=dict.fromkeys(TILED, UNTILED)),
    Written("relpos_txl_fwd", "band", TILED),
    Written("relpos_txl_fwd", "cuda", GROUPS),
    Written("relpos_txl_fwd", "hip", GROUPS),
    Written("relpos_txl_fwd", "opencl", GROUPS),
    Written("relpos_txl_fwd", "triton", TILES),
]
