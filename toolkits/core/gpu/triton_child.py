"""Child process that calls a Triton solution once a target and compiles each kernel it would have launched.

    python -P -m toolkits.core.gpu.triton_child REQUEST.json

Nothing is launched: kernels are specialised for the very arguments of the call, as on a device. The answer is written
after each kernel, so that a compiler that falls over leaves what came before.
"""

import base64
import importlib
import importlib.util
import inspect
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from toolkits.core.gpu import triton_stub
from toolkits.core.gpu.triton_answer import Problem, TritonAnswer, TritonRequest, Tuned, Variant
from toolkits.core.judge.dump import dumped_inputs, empty_outputs
from toolkits.core.judge.inputs import Values
from toolkits.core.judge.worker import DTYPES
from toolkits.core.signature import shape_of

MOST_TUNED = 4
"""Configurations of one tuned kernel that are compiled for each target; all are listed."""


class _Recorder:
    """Stands where triton launches kernels."""

    def __init__(self, request: TritonRequest) -> None:
        self._request = request
        self._stub = triton_stub.installed([(b, int(a) if a.isdecimal() else a, w) for b, a, w in request.targets])
        self._variants: list[Variant] = []
        self._problems: list[Problem] = []
        self._tuned: dict[str, list[str]] = {}
        self._seen: set[int] = set()
        self._kept: list[Any] = []
        self._target = self._configuration = ""
        self._compiling: Any = None
        jit: Any = importlib.import_module("triton.runtime.jit").JITFunction
        tuner: Any = importlib.import_module("triton.runtime.autotuner").Autotuner
        self._run = jit.run
        # What Triton's compilers raise; whatever else a pre_hook raises ends the call.
        self._not_for_this_configuration: tuple[type[Exception], ...] = (
            importlib.import_module("triton.errors").TritonError,
            RuntimeError,
        )

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            return self._compiled(kernel, args, grid, options)

        def tune(tuner: Any, *args: Any, **options: Any) -> None:
            self._each(tuner, args, options)

        jit.run, tuner.run = run, tune

    def call(self, entry: Any, number: int, values: list[Any]) -> None:
        """The solution's call for one target; what it raises, `failed` notes."""
        backend, architecture, _ = self._request.targets[number]
        self._target = f"sm_{architecture}" if backend == "cuda" else architecture
        self._stub.now = number
        self._compiling, self._configuration = None, ""
        entry(*values)
        self.write("")

    def failed(self, error: Exception) -> None:
        """The call was ended by this."""
        self._problems.append(self._problem(error))
        self.write("")

    def write(self, doing: str) -> None:
        tuned = [Tuned(kernel=name, configurations=listed) for name, listed in self._tuned.items()]
        answer = TritonAnswer(variants=self._variants, problems=self._problems, tuned=tuned, doing=doing)
        self._request.answer.write_text(answer.model_dump_json(), encoding="utf-8")

    def _compiled(self, kernel: Any, args: tuple[Any, ...], grid: Any, options: dict[str, Any]) -> Any:
        name = kernel.fn.__name__
        self.write(f"compiling {name} for {self._target}")
        self._compiling = kernel
        built = self._run(kernel, *args, grid=grid, warmup=True, **options)
        self._compiling = None
        if built is not None and id(built) not in self._seen:
            self._seen.add(id(built))
            self._kept.append(built)
            self._variants.append(self._variant(kernel, built))
        return built

    def _variant(self, kernel: Any, built: Any) -> Variant:
        return Variant(
            kernel=kernel.fn.__name__,
            file=self._file(kernel.fn.__code__.co_filename),
            line=kernel.fn.__code__.co_firstlineno,
            target=self._target,
            configuration=self._configuration,
            warps=built.metadata.num_warps,
            shared_bytes=built.metadata.shared,
            assembly=built.asm.get("ptx") or built.asm.get("amdgcn") or "",
            image=base64.b64encode(built.asm.get("cubin") or b"").decode(),
        )

    def _each(self, tuner: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Every configuration is listed, the first few are compiled."""
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        self._tuned[tuner.base_fn.__name__] = [str(one) for one in tuner.configs]
        started = time.monotonic()
        for number, one in enumerate(tuner.prune_configs(options)[:MOST_TUNED]):
            if number and time.monotonic() - started > self._request.tuning_s:
                break
            self._configuration = str(one)
            try:
                if one.pre_hook:
                    one.pre_hook({**tuner.nargs, **options, **one.all_kwargs()})
                tuner.fn.run(*args, **options, **one.all_kwargs())
            except self._not_for_this_configuration as error:
                self._problems.append(self._problem(error))
            self._compiling, self._configuration = None, ""

    def _problem(self, error: Exception) -> Problem:
        """A compiler's error has its line in the kernel, another one has its last frame in the solution."""
        message = str(getattr(error, "error_message", None) or "") or f"{type(error).__name__}: {error}"
        kernel = self._compiling
        node: Any = getattr(error, "node", None)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if self._file(frame.filename)]
        file, line = (self._file(frames[-1].filename), frames[-1].lineno) if frames else ("", None)
        if kernel is not None and hasattr(node, "lineno"):
            file = self._file(kernel.fn.__code__.co_filename)
            line = _first_line(kernel) + node.lineno - 1
        root: BaseException = error
        while root.__cause__:
            root = root.__cause__
        if root is not error:
            message = f"{message}: {root}"
        text = message.strip()[:1500]
        return Problem(target=self._target, message=text, file=file, line=line, configuration=self._configuration)

    def _file(self, path: str) -> str:
        """The name in the solution; empty: it is none of its files."""
        try:
            return Path(path).relative_to(self._request.artifact).as_posix()
        except ValueError:
            return ""


def _first_line(kernel: Any) -> int:
    """Of `def`, below the decorators: from there on the compiler counts."""
    lines, start = inspect.getsourcelines(kernel.fn)
    return start + next(at for at, line in enumerate(lines) if line.lstrip().startswith("def "))


def _inputs(request: TritonRequest) -> Values:
    if any(request.arguments.iterdir()):
        return dumped_inputs(request.task, request.workload, request.arguments)
    sizes, specs = request.task.sizes(request.workload.axes), request.task.inputs
    shapes = {name: shape_of(spec, sizes) for name, spec in specs.items() if spec.shape is not None}
    return {
        name: torch.rand(shapes[name]).to(DTYPES[spec.dtype]) if name in shapes else 1.0 for name, spec in specs.items()
    }


def main(request: TritonRequest) -> None:
    recorder = _Recorder(request)
    recorder.write("loading the solution")
    sys.path.insert(0, str(request.artifact))
    spec = importlib.util.spec_from_file_location("solution", request.artifact / request.solution.entry_file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    spec.loader.exec_module(module)
    entry = getattr(module, request.solution.entry_function)
    inputs = _inputs(request)
    for number in range(len(request.targets)):
        outputs = empty_outputs(request.task, request.workload) if request.solution.destination_passing_style else []
        try:
            recorder.call(entry, number, [*inputs.values(), *outputs])
        except Exception as error:  # the outermost frame: whatever a solution raises is an answer
            recorder.failed(error)


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"  # what 3.9 does anyway, and warns of
    main(TritonRequest.model_validate_json(Path(sys.argv[1]).read_bytes()))
