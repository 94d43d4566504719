"""Delta attention's mutants; where a solution has no chunks, what a chunk of sixteen tokens would do wrong."""

from tests.toolkits.gpu.mutants.edits import Edits, Written

FADE = "row[i] *= decay[i];"
IN_CHUNK = "(t - cu_seqlens[n]) % 16"
RAW = "-5.0f * sigmoid(slope * (g[at + j] + dt_bias[h * dim + j]))"
LENGTH = "(cu_seqlens[n + 1] - cu_seqlens[n])"
LATE = (
    f"const float now = row[i]; if ({IN_CHUNK} == 0) {{ if (t - cu_seqlens[n] > 16) row[i] = late[i]; late[i] = now; }}"
)
TAIL = f"t < cu_seqlens[n + 1] - ({LENGTH} > 16 ? {LENGTH} % 16 : 0); t++"
MEAN = "float mean = 0.0f;\n        for (int c = 0; c < dim; c++) mean += log(decay[c]) / dim;\n        "
ROWS: dict[str, Edits] = {
    "no_handoff": {FADE: f"row[i] *= {IN_CHUNK} || t == cu_seqlens[n] ? decay[i] : 0.0f;"},
    "handoff_late": {"float row[": "float late[128], row[", FADE: f"{LATE} {FADE}"},
    "drop_tail_chunk": {"t < cu_seqlens[n + 1]; t++": TAIL},
    "empty_sequence_zeroed": {"own + i] = row[i]": f"own + i] = {LENGTH} ? row[i] : 0.0f"},
    "initial_state_ignored": {"= initial_state[own + i]": "= 0.0f"},
    "initial_state_transposed": {"initial_state[own + i]": "initial_state[(n * heads + h) * dim * dim + i * dim + j]"},
    "final_state_transposed": {"final_state[own + i]": "final_state[(n * heads + h) * dim * dim + i * dim + j]"},
    "bfloat16_state": {FADE: f"row[i] = ({IN_CHUNK} ? row[i] : kept(row[i], 7)) * decay[i];"},
    "decay_after_update": {
        FADE: "",
        "* query[i];\n        }\n        out": f"* query[i];\n {FADE}\n        }}\n        out",
    },
    "no_state_decay": {FADE: ""},
    "no_beta": {"update = strength * (": "update = ("},
    "no_delta_rule": {"(v[at + j] - known * key_norm)": "v[at + j]"},
    "read_before_write": {"read += row[i] *": "read += (row[i] - update * key_norm * key[i]) *"},
    "one_gate_per_head": {"float query_squares": f"{MEAN}float query_squares", FADE: "row[i] *= exp(mean);"},
    "a_log_not_exponentiated": {"slope * (g": "A_log[h] * (g"},
    "no_dt_bias": {" + dt_bias[h * dim + j]": ""},
    "softplus_gate": {RAW: "log(sigmoid(-slope * (g[at + j] + dt_bias[h * dim + j])))"},
    "beta_not_sigmoided": {"strength = sigmoid(beta[t * heads + h])": "strength = beta[t * heads + h]"},
    "no_key_norm": {"key_norm = 1.0f /": "key_norm = 1.0f + 0.0f *"},
    "no_query_norm": {"scale * query_norm * read": "scale * read"},
    "no_scale": {"scale * query_norm * read": "query_norm * read"},
    "scale_recomputed": {"scale * query_norm * read": "query_norm * read / sqrt((float)dim)"},
}
LOOP_FADE = "row[i] *= decay[i];"
SLOPE = "std::exp(A_log[h]) * (g[at + i] + dt_bias[h * dim + i])"
STATE = "final_state + ((n * heads + h) * dim + j) * dim"
TURNED = "i * dim + j]"
END = "                }\n            }\n"
MATRICES = "heads * dim * dim"
SQUARE = "(x / (dim * dim) * dim + x % dim) * dim + x / dim % dim"
LOOPS: dict[str, Edits] = {
    "no_handoff": {LOOP_FADE: f"row[i] *= {IN_CHUNK} || t == cu_seqlens[n] ? decay[i] : 0.0f;"},
    "handoff_late": {
        "std::vector<float> query(dim)": "std::vector<float> late(sequences * heads * dim * dim), query(dim)",
        LOOP_FADE: f"float &kept_late = late[row - final_state + i]; const float now = row[i];"
        f" if ({IN_CHUNK} == 0) {{ if (t - cu_seqlens[n] > 16) row[i] = kept_late; kept_late = now; }} {LOOP_FADE}",
    },
    "drop_tail_chunk": {"t < cu_seqlens[n + 1]; t++": TAIL},
    "state_leak": {
        "n < sequences; n++)": "n < sequences; n++, n < sequences && std::copy("
        f"final_state + (n - 1) * {MATRICES}, final_state + n * {MATRICES}, final_state + n * {MATRICES}))"
    },
    "empty_sequence_zeroed": {
        "n < sequences; n++)": "n < sequences; n++)\n        if (cu_seqlens[n] == cu_seqlens[n + 1])"
        f" std::fill_n(final_state + n * {MATRICES}, {MATRICES}, 0.0f);\n        else"
    },
    "initial_state_ignored": {"= initial_state[x]": "= 0.0f"},
    "initial_state_transposed": {"= initial_state[x]": f"= initial_state[{SQUARE}]"},
    "final_state_transposed": {
        f"read;\n{END}": f"read;\n{END}"
        "    const std::vector<float> s(final_state, final_state + sequences * heads * dim * dim);\n"
        f"    for (int64_t x = 0; x < static_cast<int64_t>(s.size()); x++) final_state[x] = s[{SQUARE}];\n"
    },
    "bfloat16_state": {LOOP_FADE: f"row[i] = ({IN_CHUNK} ? row[i] : kept(row[i], 7)) * decay[i];"},
    "decay_after_update": {LOOP_FADE: "", "read += row[i] * query[i];": f"read += row[i] * query[i];\n {LOOP_FADE}"},
    "no_state_decay": {LOOP_FADE: ""},
    "no_beta": {"update = strength * (": "update = ("},
    "no_delta_rule": {"(v[at + j] - known)": "v[at + j]"},
    "read_before_write": {"read += row[i] *": "read += (row[i] - update * key[i]) *"},
    "one_gate_per_head": {
        "const float strength": "float mean = 0.0f;\n for (float one : decay) mean += std::log(one) / dim;\n"
        " for (float &one : decay) one = std::exp(mean);\n const float strength"
    },
    "a_log_not_exponentiated": {"std::exp(A_log[h])": "A_log[h]"},
    "no_dt_bias": {" + dt_bias[h * dim + i]": ""},
    "softplus_gate": {f"-5.0f * sigmoid({SLOPE})": f"std::log(sigmoid(-{SLOPE}))"},
    "beta_not_sigmoided": {"strength = sigmoid(beta[t * heads + h])": "strength = beta[t * heads + h]"},
    "no_key_norm": {"k[at + i] * key_norm": "k[at + i]"},
    "no_query_norm": {"q[at + i] * query_norm": "q[at + i]"},
    "no_scale": {"query_norm * scale": "query_norm"},
    "scale_recomputed": {"query_norm * scale": "query_norm / std::sqrt(static_cast<float>(dim))"},
}
CHUNKED: dict[str, Edits] = {
    "split_exponent": {"static_assert(CHUNK * 5 < 87": "#undef CHUNK\n#define CHUNK 64\nstatic_assert(CHUNK < 87"},
}
TILES: dict[str, Edits] = {
    "no_handoff": {
        "        t = first + lane\n": "        t = first + lane\n        state *= tl.where(first == start, 1.0, 0.0)\n"
    },
    "handoff_late": {
        "    slope =": "    late = state\n    slope =",
        "        t = first + lane\n": "        t = first + lane\n        now = state\n"
        "        state = tl.where(first > start + CHUNK, late, state)\n        late = now\n",
    },
    "drop_tail_chunk": {
        "    for first": "    end -= tl.where(end - start > CHUNK, (end - start) % CHUNK, 0)\n    for first"
    },
    "empty_sequence_zeroed": {"own, state)": "own, tl.where(end > start, state, 0.0))"},
    "initial_state_ignored": {"tl.load(initial_state + own)": "tl.zeros([DIM, VALUES], tl.float32)"},
    "initial_state_transposed": {
        "tl.load(initial_state + own)": "tl.load(initial_state + (n * heads + h) * DIM * DIM + j + i[:, None] * DIM)"
    },
    "final_state_transposed": {
        "tl.store(final_state + own": "tl.store(final_state + (n * heads + h) * DIM * DIM + j + i[:, None] * DIM"
    },
    "bfloat16_state": {"(tl.sum(decay, 0))[:, None]": "(tl.sum(decay, 0))[:, None]\n        state = _kept(state, 7)"},
    "decay_after_update": {"tl.cumsum(decay, 0)": "tl.cumsum(decay, 0) - decay"},
    "no_state_decay": {"        state *= tl.exp(tl.sum(decay, 0))[:, None]\n": ""},
    "no_beta": {"strength * wrong": "wrong"},
    "no_delta_rule": {
        'tl.dot(_inverse(scores, lane, LEVELS), strength * wrong, input_precision="ieee")': "strength * wrong"
    },
    "read_before_write": {"earlier | (lane[:, None] == lane)": "earlier"},
    "split_exponent": {"LEVELS=4": "LEVELS=6"},
    "one_gate_per_head": {
        "        strength =": "        decay = tl.sum(decay, 1, keep_dims=True) / DIM + decay * 0\n        strength ="
    },
    "a_log_not_exponentiated": {"tl.exp(tl.load(A_log + h))": "tl.load(A_log + h)"},
    "no_dt_bias": {" + bias\n": "\n"},
    "softplus_gate": {"-5.0 * tl.sigmoid(slope * gate)": "tl.log(tl.sigmoid(-slope * gate))"},
    "beta_not_sigmoided": {"tl.sigmoid(tl.load(beta": "(tl.load(beta", 'float("-inf"))': "0.0)"},
    "no_key_norm": {
        "_unit(tl.load(k + at + i, mask=inside, other=0.0))": "tl.load(k + at + i, mask=inside, other=0.0)"
    },
    "no_query_norm": {
        "_unit(tl.load(q + at + i, mask=inside, other=0.0))": "tl.load(q + at + i, mask=inside, other=0.0)"
    },
    "no_scale": {"scale * _unit": "_unit"},
    "scale_recomputed": {"scale * _unit": "_unit", "query * growth": "query * growth / tl.sqrt(DIM * 1.0)"},
}
for _name in ("no_handoff", "handoff_late", "drop_tail_chunk", "empty_sequence_zeroed"):
    TILES[_name] = {"    end = tl.load": "    start = tl.load(cu_seqlens + n)\n    end = tl.load", **TILES[_name]}
NO_CHUNKS = "the recurrence divides no exponents: there is nothing to take apart"
PARALLEL = "its sequences run beside each other: none comes after another whose state could leak"
APART = {"split_exponent": NO_CHUNKS, "state_leak": PARALLEL}
WRITTEN = [
    Written("kda_prefill", "naive", LOOPS, cannot={"split_exponent": f"{NO_CHUNKS}; written in `chunked`"}),
    Written("kda_prefill", "chunked", CHUNKED),
    Written("kda_prefill", "cuda", ROWS, cannot=APART),
    Written("kda_prefill", "hip", ROWS, cannot=APART),
    Written("kda_prefill", "opencl", ROWS, cannot=APART),
    Written("kda_prefill", "triton", TILES, cannot={"state_leak": PARALLEL}),
]
