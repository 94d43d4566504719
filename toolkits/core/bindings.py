"""What a C++ or CUDA source needs that speaks in tensors instead of pointers: headers, libraries, an exported name.

The two bindings are those of FlashInfer Trace: `torch`, a Python extension with pybind11, and `tvm-ffi`, a library with
TVM's calling convention. Knows no compiler, and imports neither torch nor tvm_ffi: it only looks where they lie.
"""

import base64
import re
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from toolkits.core.errors import ToolkitUnavailable
from toolkits.core.gpu.launches import plain
from toolkits.core.schema import BindingName, Solution, Task
from toolkits.core.signature import c_header

EXTENSION = "kernel_extension"
"""What the module is called that a torch extension defines."""
HOST = "binding_host.py"
ENCODED = "library.b64"
UNIT = "binding_exports"
"""Made where the sources export nothing; it includes the entry file."""
LIMIT_S = 240.0
"""Of a compiler: torch's headers alone take a quarter of a minute on a quiet machine."""
TORCH_LIBRARIES = ("c10", "torch_cpu", "torch_python")
_MODULE = re.compile(r"\b(?:PYBIND11_MODULE|PyInit_\w+)\s*\(")


@dataclass(frozen=True)
class Binding:
    """Of one binding on this machine."""

    name: BindingName
    includes: tuple[Path, ...]
    libraries: Path
    """The folder with those to link to."""
    linked: tuple[str, ...]
    package: str
    """With its version: another one is another build."""
    defines: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = field(default=())

    def compile_flags(self) -> list[str]:
        """Headers are the system's: what compilers warn of in them is not the solution's."""
        return [*self.defines, *(word for one in self.includes for word in ("-isystem", str(one)))]

    def library_flags(self) -> list[str]:
        return [f"-L{self.libraries}", *(f"-l{one}" for one in self.linked), *self.link_flags]

    def visible(self) -> list[str]:
        """What a compiler in a box must be able to read."""
        return [*map(str, self.includes), str(self.libraries)]

    def symbol(self, function: str) -> str:
        """What a library must define so that the host can find the function."""
        return f"PyInit_{EXTENSION}" if self.name == "torch" else f"__tvm_ffi_{function}"

    def declaration(self, function: str) -> str:
        """How a source makes that symbol."""
        if self.name == "torch":
            return f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{function}", &{function}); }}'
        return f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({function}, {function});"


def missing(name: BindingName) -> str:
    """Empty when solutions of the binding can be built here, else what to install."""
    if name == "tvm-ffi":
        return "" if find_spec("tvm_ffi") else "tvm-ffi: `pip install 'kernel-lab[tvm-ffi]'` (or apache-tvm-ffi)"
    if not find_spec("torch"):
        return "torch: `pip install torch`"
    return "" if (_python_headers() / "Python.h").is_file() else "Python.h: `apt install python3-dev`"


def binding(name: BindingName) -> Binding:
    """Where the binding lies on this machine."""
    if lacks := missing(name):
        raise ToolkitUnavailable(f"this machine lacks {lacks}")
    return _found(name)


@cache
def _found(name: BindingName) -> Binding:
    if name == "tvm-ffi":
        home = _home("tvm_ffi")
        package = f"apache-tvm-ffi {version('apache-tvm-ffi')}"
        strict = ("-Wl,--no-undefined",)
        return Binding(name, (home / "include",), home / "lib", ("tvm_ffi",), package, link_flags=strict)
    home = _home("torch")
    headers = home / "include"
    includes = (headers, headers / "torch" / "csrc" / "api" / "include", _python_headers())
    # The interpreter's own symbols are found when it loads the module: nothing may ask for them before.
    defines = (f"-DTORCH_EXTENSION_NAME={EXTENSION}", "-DTORCH_API_INCLUDE_EXTENSION_H")
    return Binding(name, includes, home / "lib", TORCH_LIBRARIES, f"torch {version('torch')}", defines)


def _home(package: str) -> Path:
    found = find_spec(package)
    assert found and found.origin
    return Path(found.origin).resolve().parent


def _python_headers() -> Path:
    return Path(sysconfig.get_paths()["include"])


def header(task: Task) -> str:
    """The `task.h` of a bound solution: constants and shapes; the functions' types are the binding's business."""
    lines = c_header(task, "run").splitlines()
    return "\n".join([*(line for line in lines if not line.startswith('extern "C"')), ""])


def exports(solution: Solution) -> str:
    """A source that includes the entry file and exports what the sources do not; empty: they export it all."""
    texts = [plain(text) for text in solution.sources.values()]
    wanted = [name for name in (solution.entry_function, solution.plan_function) if name]
    if solution.binding == "torch":
        if any(_MODULE.search(text) for text in texts):
            return ""
        lines = ["#include <torch/extension.h>", _included(solution), "PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {"]
        return "\n".join([*lines, *(f'    module.def("{name}", &{name});' for name in wanted), "}", ""])
    left = [name for name in wanted if not any(_exported(name).search(text) for text in texts)]
    lines = [_included(solution), "#include <tvm/ffi/function.h>"]
    return (
        "\n".join([*lines, *(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, {name});" for name in left), ""]) if left else ""
    )


def _included(solution: Solution) -> str:
    return f'#include "{solution.entry_file}"'


def _exported(name: str) -> re.Pattern[str]:
    return re.compile(rf"\bTVM_FFI_DLL_EXPORT_TYPED_FUNC\s*\(\s*{re.escape(name)}\b|\b__tvm_ffi_{re.escape(name)}\b")


def artifact(name: BindingName, library: bytes) -> Mapping[str, str]:
    """The files that a worker loads: a library crosses as text, like all that a worker is given."""
    host = (Path(__file__).parent / HOST).read_text(encoding="utf-8")
    return {
        HOST: host.replace('BINDING: str = "torch"', f'BINDING: str = "{name}"'),
        ENCODED: base64.b64encode(library).decode(),
    }
