"""A solution and all its mutants in one build: which of them runs is the environment's or a macro's to say."""

import re
from collections.abc import Mapping

from mcp_server.folders import read_task
from tests.toolkits.gpu.mutants.edits import KERNELS, Written, edited
from toolkits.core.schema import Solution
from toolkits.core.signature import c_parameters

CHOICE = "MUTANT"
"""The variable, or macro, that holds the number of the mutant; 0 is the solution itself."""
_BITS = """{static}float kept(float value, int bits) {{
    const {unsigned} all = {number}, lost = 23 - bits;
    return {float}((all + (1u << (lost - 1))) >> lost << lost);
}}
"""
_CAST = {"unsigned": "uint32_t", "number": "__float_as_uint(value)", "float": "__uint_as_float"}
KEPT: Mapping[str, str] = {
    "cpp": "#include <bit>\n#include <cstdint>\n#include <cstdlib>\n#include <vector>\n"
    + _BITS.format(
        static="static inline ",
        unsigned="uint32_t",
        number="std::bit_cast<uint32_t>(value)",
        float="std::bit_cast<float>",
    ),
    "cuda": "#include <cstdlib>\n" + _BITS.format(static="__device__ ", **_CAST),
    "hip": "#include <cstdlib>\n" + _BITS.format(static="__device__ ", **_CAST),
    "opencl": _BITS.format(static="static ", unsigned="uint", number="as_uint(value)", float="as_float"),
    "triton": """

@triton.jit
def _kept(value, BITS: tl.constexpr):
    lost: tl.constexpr = 23 - BITS
    bits = value.to(tl.int32, bitcast=True) + (1 << (lost - 1))
    return (bits >> lost << lost).to(tl.float32, bitcast=True)
""",
}
"""A float32 with so many bits of its mantissa: 7 are bfloat16's, 10 are half precision's."""


def together(written: Written) -> Solution:
    """One solution that is itself and any of its mutants; of shipped tunables the defaults."""
    shipped = written.shipped()
    text = shipped.sources[shipped.entry_file]
    variants = [text, *(edited(text, edits) for edits in written.mutants.values())]
    make = {"opencl": _by_macro, "triton": _by_module}.get(shipped.toolkit, _by_namespace)
    return shipped.model_copy(update={"sources": {**shipped.sources, **make(shipped, variants)}})


def _by_namespace(shipped: Solution, variants: list[str]) -> dict[str, str]:
    name, kind = shipped.entry_function, shipped.toolkit
    stream = [f"{kind}Stream_t stream"] if kind != "cpp" else []
    parameters = [*c_parameters(read_task(KERNELS / shipped.task)), *stream]
    arguments = ", ".join(parameter.rpartition(" ")[2] for parameter in parameters)
    include = re.compile(r"^#include .*\n", re.MULTILINE)
    includes = "".join(dict.fromkeys(include.findall(variants[0])))
    bodies = [include.sub("", text).replace('extern "C" void', "void") for text in variants]
    parts = [f"namespace mutant{number} {{\n{body}\n}}" for number, body in enumerate(bodies)]
    cases = " ".join(f"case {number}: return mutant{number}::{name}({arguments});" for number in range(len(variants)))
    choose = f'extern "C" void {name}({", ".join(parameters)}) {{ switch (atoi(getenv("{CHOICE}"))) {{ {cases} }} }}\n'
    return {shipped.entry_file: "\n".join([includes, KEPT[kind], *parts, choose])}


def _by_macro(shipped: Solution, variants: list[str]) -> dict[str, str]:
    parts = [f"#if {CHOICE} == {number}\n{text}\n#endif" for number, text in enumerate(variants)]
    return {shipped.entry_file: "\n".join([KEPT["opencl"], *parts])}


def _by_module(shipped: Solution, variants: list[str]) -> dict[str, str]:
    files = {f"mutant{number}.py": text + KEPT["triton"] for number, text in enumerate(variants)}
    head = "import os\nfrom importlib import import_module\n\n"
    chosen = f'mutant = import_module("mutant" + os.environ.get("{CHOICE}", "0"))\n'
    name = shipped.entry_function
    return {**files, shipped.entry_file: f"{head}{chosen}{name} = mutant.{name}\n"}
