"""A Triton driver for machines without a GPU: it names a target to compile for, and times nothing.

Runs in children only, beside a solution: on the standard library, torch and triton alone.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch


def installed(targets: Sequence[tuple[str, int | str, int]]) -> Any:
    """Make it triton's driver; its `now` is the number of the target that kernels are compiled for."""
    triton: Any = importlib.import_module("triton")
    base: Any = importlib.import_module("triton.backends.driver").DriverBase
    target: Any = importlib.import_module("triton.backends.compiler").GPUTarget

    class Stub(base):
        now = 0

        def __init__(self) -> None: ...

        @staticmethod
        def is_active() -> bool:
            return True

        def map_python_to_cpp_type(self, kind: str) -> str:
            return kind

        def get_current_target(self) -> Any:
            return target(*targets[self.now])

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

        def get_current_device(self) -> int:
            return self.now  # a device a target: triton keeps by device what it compiled

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_device_interface(self) -> Any:
            return torch.cpu

        def get_benchmarker(self) -> Any:
            return _first_is_best

        def get_empty_cache_for_benchmark(self) -> torch.Tensor:
            return torch.empty(1)

        def clear_cache(self, cache: torch.Tensor) -> None: ...

    stub = Stub()
    triton.runtime.driver.set_active(stub)
    return stub


def _first_is_best(call: Callable[[], object], quantiles: Sequence[float] | None = None, **_: object) -> Any:
    """Of equal times the tuner takes the first; nothing is run for it."""
    return [1.0] * len(quantiles) if quantiles else 1.0
