"""Child process that samples which source line of a Python solution runs, and which torch operators it spends on.

    python -P -m toolkits.core.profilers.sampling REQUEST.json

A tracer would slow each line by its own cost; a second thread that looks on costs the kernel next to nothing.
"""

import importlib.util
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from toolkits.core.judge.dump import dumped_inputs, empty_outputs
from toolkits.core.profile_child import Operator, SampleRequest, Samples
from toolkits.core.signature import plan_of

SAMPLE_EVERY_S = 0.001
SAMPLE_FOR_S = 1.5
OPERATORS = 8


def sample(request: SampleRequest) -> Samples:
    """Call the solution for a while under the sampler, then once under torch's own profiler."""
    call = _bound_call(request)
    call()
    seen: Counter[str] = Counter()
    calls, seconds = _watched(call, request.artifact, seen)
    return Samples(call_us=seconds / calls * 1e6, calls=calls, lines=seen, operators=_operators(call))


def _bound_call(request: SampleRequest) -> Callable[[], object]:
    task, solution = request.task, request.solution
    inputs = dumped_inputs(task, request.workload, request.arguments)
    outputs = empty_outputs(task, request.workload) if solution.destination_passing_style else []
    arguments = [*(inputs[name] for name in task.inputs), *outputs]
    sys.path.insert(0, str(request.artifact))
    spec = importlib.util.spec_from_file_location("solution", request.artifact / solution.entry_file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., object] = vars(module)[solution.entry_function]
    if plan := plan_of(task, solution):
        planned: Callable[..., object] = vars(module)[solution.plan_function]
        arguments.insert(0, planned(*(inputs[name] for name in plan.inputs)))
    return lambda: function(*arguments)


def _watched(call: Callable[[], object], root: Path, seen: Counter[str]) -> tuple[int, float]:
    """Calls and seconds while a second thread sampled this one."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(threading.get_ident(), root, seen, done))
    # By default a waiting thread gets the interpreter after 5 ms only.
    sys.setswitchinterval(SAMPLE_EVERY_S / 10)
    watcher.start()
    started, calls = time.perf_counter(), 0
    while calls == 0 or time.perf_counter() - started < SAMPLE_FOR_S:
        call()
        calls += 1
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    return calls, seconds


def _watch(thread: int, root: Path, seen: Counter[str], done: threading.Event) -> None:
    while not done.wait(SAMPLE_EVERY_S):
        # The documented way to look at another thread, underscore or not.
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
        seen[_line(frames.get(thread), root)] += 1


def _line(frame: FrameType | None, root: Path) -> str:
    """The innermost frame in the solution's own sources."""
    while frame:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(root):
            return f"{file.relative_to(root)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _operators(call: Callable[[], object]) -> list[Operator]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        call()
    events: list[Any] = list(profiler.key_averages())
    ranked = sorted(events, key=lambda event: -event.self_cpu_time_total)
    return [
        Operator(name=event.key, calls=event.count, self_us=event.self_cpu_time_total) for event in ranked[:OPERATORS]
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = SampleRequest.model_validate_json(Path(sys.argv[1]).read_bytes())
    asked.answer.write_text(sample(asked).model_dump_json(), encoding="utf-8")
