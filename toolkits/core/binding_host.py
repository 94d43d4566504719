"""What a worker loads in place of a bound solution: its library, whose exported functions it shows as its own.

Lies beside the encoded library, and knows neither a judge nor a task. Tensors go in as they are; what comes back in
another wrapping is unwrapped, since the judge looks at torch tensors.
"""

import base64
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import torch

BINDING: str = "torch"
"""Replaced by the solution's binding."""
EXTENSION = "kernel_extension"
HOW = {
    "torch": '`PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{name}", &{name}); }}`',
    "tvm-ffi": "`TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, {name});`",
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    function = getattr(_library, name, None)
    if function is None:
        raise AttributeError(f"the library exports no function {name!r}: {HOW[BINDING].format(name=name)}")
    return function if BINDING == "torch" else _unwrapping(function)


def _unwrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        result = function(*arguments)
        return result if result is None else _torch(result)

    return run


def _torch(result: Any) -> Any:
    """A tensor, or several, of whatever package speaks DLPack."""
    if isinstance(result, torch.Tensor):
        return result
    if hasattr(result, "__dlpack__"):
        return torch.from_dlpack(result)
    return [_torch(one) for one in result] if hasattr(result, "__len__") else result


def _loaded() -> Any:
    file = Path.cwd() / f"{EXTENSION}.so"
    file.write_bytes(base64.b64decode(Path(__file__).with_name("library.b64").read_text(encoding="ascii")))
    try:
        if BINDING == "tvm-ffi":
            return import_module("tvm_ffi").load_module(str(file))
        loader = ExtensionFileLoader(EXTENSION, str(file))
        spec = spec_from_loader(EXTENSION, loader)
        assert spec
        module = module_from_spec(spec)
        loader.exec_module(module)
        return module
    finally:
        file.unlink()


_library = _loaded()
