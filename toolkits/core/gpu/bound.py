"""What nvcc needs for a CUDA solution that takes tensors, and why it is not run where there is no device.

Knows no way to launch anything. Torch's CUDA headers lean on libraries that a machine without a GPU often lacks: for a
report their names are enough.
"""

import re
from pathlib import Path

from toolkits.core import bindings
from toolkits.core.bindings import Binding
from toolkits.core.gpu import toolchain
from toolkits.core.gpu.launches import plain
from toolkits.core.schema import Diagnostic, Solution, Task

STAND_INS = Path(__file__).parent / "torch_headers"
TORCH_FLAGS = (
    *("-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__"),
    *("-D__CUDA_NO_HALF2_OPERATORS__", "--expt-relaxed-constexpr"),
)
"""What torch itself builds extensions with."""


def flags(binding: Binding) -> list[str]:
    """Of nvcc, after the solution's own."""
    if binding.name != "torch":
        return binding.compile_flags()
    return [*TORCH_FLAGS, *binding.compile_flags(), *(["-isystem", str(STAND_INS)] if _lacks_headers(binding) else [])]


def visible(binding: Binding) -> list[str]:
    """What nvcc must be able to read in its box."""
    return [*binding.visible(), str(STAND_INS)]


def header(task: Task) -> str:
    """The `task.h` of a CUDA solution with a binding: constants and shapes."""
    return bindings.header(task).replace("#include <cstdint>", "#include <cstdint>\n#include <cuda_runtime.h>")


def entry_errors(binding: Binding, solution: Solution) -> list[Diagnostic]:
    """Functions that no source so much as names: where nothing is linked, no linker says so."""
    texts = [plain(text) for text in solution.sources.values()]
    wanted = filter(None, (solution.entry_function, solution.plan_function))
    return [
        Diagnostic(
            severity="error", message=f"missing entry function: `{binding.declaration(name)}`", file=solution.entry_file
        )
        for name in wanted
        if not any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)
    ]


def not_run(binding: Binding, targets: str) -> str:
    """Why a solution that builds is SKIPPED here."""
    return (
        f"built for {targets}, but not run: a function on {binding.name} tensors runs on a CUDA device, which this"
        " machine has not; an entry on pointers, without `binding`, would be checked by emulation"
    )


def _lacks_headers(binding: Binding) -> bool:
    """A torch for the CPU, or a CUDA toolkit without its mathematical libraries."""
    made = [folder / "c10" / "cuda" / "impl" / "cuda_cmake_macros.h" for folder in binding.includes]
    cuda = [folder / "cusparse.h" for folder in toolchain.includes()]
    return not (any(one.is_file() for one in made) and any(one.is_file() for one in cuda))
