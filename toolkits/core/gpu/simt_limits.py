"""What the emulation cannot run, found in the sources before any compiler sees them: the reason of a SKIPPED.

Reads tokens. What stands only under a condition on the device's architecture is not looked at: no such device is here.
"""

import re
from collections.abc import Iterator, Mapping

from toolkits.core.gpu.simt_tokens import Token, closing, line_of, tokens

MATRIX = "the tensor cores have no emulation"
_HEADERS = {
    r"mma\.h|crt/mma\.h|rocwmma/.*": MATRIX,
    r"cutlass/.*|cute/.*": "CUTLASS needs the real device",
    r"cub/.*|thrust/.*|hipcub/.*|rocprim/.*": "CUB and Thrust need the real compiler",
    r"(hip)?(cublas|blas|cudnn|cufft|curand|cusparse|cusolver|rand|fft|sparse|solver).*|rocblas/.*|miopen/.*|ck/.*": (
        "vendors' libraries need the real device"
    ),
    r"cuda/.*": "libcu++ (cuda::barrier, pipelines, atomics) has no emulation",
    r"torch/.*|ATen/.*|c10/.*|pybind11/.*|tvm/.*": "bindings of Python or torch are not for a plain C entry",
    r"cooperative_groups/memcpy_async\.h": "asynchronous copies have no emulation",
}
_NAMES = {
    r"asm|__asm|__asm__": "inline assembly has no emulation",
    r"wgmma\w*|tcgen05\w*|nvcuda|wmma|__builtin_amdgcn_s?w?mfma_\w+|__builtin_amdgcn_s?wmma_\w+": MATRIX,
    r"CUtensorMap|cuTensorMapEncode\w*": "the tensor memory accelerator has no emulation",
    r"tex[123]D\w*|cuda\w*Texture\w*|hip\w*Texture\w*|surf[123]D\w*|\w*SurfaceObject_t": "textures have no emulation",
    r"__cluster_dims__|cluster_group|this_cluster|cudaLaunchKernelEx\w*": "clusters of blocks have no emulation",
    r"this_grid|grid_group|(cuda|hip)LaunchCooperativeKernel": "blocks run one after the other: no barrier of a grid",
    r"coalesced_threads|labeled_partition|binary_partition": "groups that form at run time have no emulation",
    r"__pipeline_\w+|__nvvm_\w+|__nv_cvt_\w+|__nv_fp8\w*": "this intrinsic has no emulation",
    r"(cuda|hip)Graph\w*|(cuda|hip)StreamBeginCapture": "graphs have no emulation",
}
_KNOWN_BUILTINS = re.compile(
    r"__builtin_amdgcn_(work(item|group)_(id|size)_[xyz]|s_barrier|wave_barrier|s_waitcnt|sched_barrier|sched_group_barrier"
    r"|s_setprio|s_sleep|fence|mbcnt_(lo|hi)|readfirstlane|readlane|ds_bpermute|rcpf|rsqf|sqrtf|exp2f|logf|fmed3f)"
)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b([^\n]*)", re.MULTILINE)
_ON_DEVICE = re.compile(r"\b__(CUDA_ARCH|HIP_DEVICE_COMPILE|gfx\w+)__\b")


def unsupported(sources: Mapping[str, str]) -> str:
    """`file:line: reason` of the first thing that cannot be emulated; empty: everything may be tried."""
    for file, text in sources.items():
        seen = _elsewhere_blank(text)
        places = sorted([*_headers(seen), *_names(seen), *_launches_from_kernels(seen)])
        if places:
            place, why = places[0]
            return f"{file}:{line_of(text, place)}: {why}"
    return ""


def _headers(text: str) -> Iterator[tuple[int, str]]:
    for match in _INCLUDE.finditer(text):
        for pattern, why in _HEADERS.items():
            if re.fullmatch(pattern, match[1]):
                yield match.start(1), f"#include <{match[1]}>: {why}"


def _names(text: str) -> Iterator[tuple[int, str]]:
    for token in tokens(text):
        if token.kind != "word":
            continue
        if token.text.startswith("__builtin_amdgcn_") and not _KNOWN_BUILTINS.fullmatch(token.text):
            why = MATRIX if "mfma" in token.text or "wmma" in token.text else "this builtin has no emulation"
            yield token.start, f"{token.text}: {why}"
            continue
        for pattern, why in _NAMES.items():
            if re.fullmatch(pattern, token.text):
                yield token.start, f"{token.text}: {why}"
                break


def _launches_from_kernels(text: str) -> Iterator[tuple[int, str]]:
    found = tokens(text)
    inside = -1
    for index, token in enumerate(found):
        if token.text == "{" and index > inside and _is_device_function(found, index):
            inside = closing(found, index)
        if token.text == "<<<" and index < inside:
            yield token.start, "a kernel that launches kernels has no emulation"


def _is_device_function(found: list[Token], brace: int) -> bool:
    words: set[str] = set()
    at = brace - 1
    while at >= 0 and found[at].text not in (";", "{", "}"):
        words.add(found[at].text)
        at -= 1
    return "__global__" in words or ("__device__" in words and "__host__" not in words)


def _elsewhere_blank(text: str) -> str:
    """The text with blanks where it is compiled for a real device only."""
    parts, done = list[str](), 0
    hidden_since: list[int | None] = []
    for match in _CONDITION.finditer(text):
        word = match[1]
        if word == "endif" or word in ("else", "elif"):
            since = hidden_since.pop() if hidden_since else None
            if since is not None:
                parts += [text[done:since], re.sub(r"[^\n]", " ", text[since : match.start()])]
                done = match.start()
        if word != "endif":
            hidden_since.append(match.end() if _device_only(word, match[2]) else None)
    return "".join([*parts, text[done:]])


def _device_only(word: str, condition: str) -> bool:
    plain = "!" not in condition and "||" not in condition and "<" not in condition
    return word in ("if", "ifdef", "elif") and plain and bool(_ON_DEVICE.search(condition))
