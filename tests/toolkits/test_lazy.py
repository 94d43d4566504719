"""No toolkit, and no module that the server loads with it, loads a heavy library or a vendor's before it is used."""

import subprocess
import sys
from pathlib import Path

from toolkits.core.toolkit import available

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "numpy", "triton", "cupy", "cuda", "pyopencl", "pynvml", "amdsmi", "ncu_report", "ziglang", "cffi"}
BESIDE = ("checkup", "sanitize", "profiling", "gpu_profile", "crashes", "device", "judge.client", "profilers.digest")


def _loaded(modules: list[str]) -> set[str]:
    """Top-level names that are there after these imports, in a process of their own."""
    code = f"import sys, {', '.join(modules)}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_every_toolkit_and_what_serves_them_loads_nothing_heavy() -> None:
    assert {"cpp", "python", "triton", "cuda", "hip", "opencl"} <= set(available())
    modules = [f"toolkits.{name}" for name in available()] + [f"toolkits.core.{name}" for name in BESIDE]
    assert not _loaded(modules) & HEAVY
    assert _loaded(["numpy"]) & HEAVY  # what is looked for would be seen
