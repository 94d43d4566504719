"""One evaluation from start to verdict. Owns seeds, inputs, expected values, the clock and the list of workloads.

A candidate's worker gets input bytes and nothing else. Correctness comes first, over every distribution; then
candidate and baseline run in randomly interleaved pairs on the same core, on content that is new in every pair.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from toolkits.core.errors import HarnessError
from toolkits.core.judge import timing
from toolkits.core.judge.bench import Bench, Parts, warm_key
from toolkits.core.judge.inputs import Case, InvalidReference, secret_generator
from toolkits.core.judge.inspection import bind, call, checked_call, inspect, load, refuse_foul_play
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.results import Rejected, Timed, failed, passed
from toolkits.core.judge.workers import Cancelled, Spent, Worker
from toolkits.core.judge.zygotes import Zygote
from toolkits.core.schema import BenchmarkResult, Stage, Status

Progress = Callable[[str, float], None]
"""What is happening, and the share done, 0 to 1."""
CHECKED, CHECKED_OF = 2, 8
"""Of so many pairs in a row so many, chosen at random, are compared with the reference; so is the first pair."""
WORKLOAD_LIMIT_S = 8.0
"""Wall time after which no further pairs are drawn for a workload."""
SLOTS_TIMED = 1000


class Judge:
    """Evaluates requests one after the other; warm between them."""

    def __init__(self, start: Callable[[], Zygote], stop: Callable[[], bool], stop_fd: int) -> None:
        self._start, self._stop, self._stop_fd = start, stop, stop_fd
        self._zygote = start()
        self._bench: Bench | None = None
        self._random = random.SystemRandom()

    def _fork(self) -> Worker:
        return Worker(self._zygote, self._stop, self._stop_fd)

    def evaluate(self, request: EvaluationRequest, progress: Progress) -> BenchmarkResult:
        """The story of one candidate."""
        started = time.perf_counter_ns()
        candidate = None
        try:
            if self._stop():
                raise Cancelled
            bench = self._warm(request)
            if request.fresh:
                bench.cases.renew_all()
            with bench.parts.part("start_worker"):
                candidate = self._fork()
                load(candidate, request.candidate, request.candidate_build)
            rounds = self._correctness(bench, candidate, progress)
            if request.mode == "check":
                return passed(request, rounds, [], self._spent(started, bench, candidate), self._host())
            timed = [self._time(bench, candidate, index, progress) for index in range(len(request.task.workloads))]
            return passed(request, rounds, timed, self._spent(started, bench, candidate), self._host())
        except InvalidReference as error:
            return failed(request, Rejected(Status.INVALID_REFERENCE, Stage.CORRECTNESS, "bad_reference", str(error)))
        except (HarnessError, Cancelled):
            self._forget()
            raise
        except Rejected as rejected:
            return failed(request, rejected, candidate.output() if candidate else "")
        finally:
            if candidate:
                candidate.close()

    def idle(self) -> bool:
        """One step of renewing used cases; False when there is nothing to do."""
        return bool(self._bench) and self._bench.cases.renew_one()

    def close(self) -> None:
        self._forget()
        self._zygote.close()

    def _forget(self) -> None:
        """Drop all that is warm: another task, or a baseline in an unknown state."""
        if self._bench:
            self._bench.close()
        self._bench = None

    def _warm(self, request: EvaluationRequest) -> Bench:
        if not self._zygote.usable():
            self._forget()
            self._zygote.close()
            self._zygote = self._start()
        if self._bench and self._bench.key != warm_key(request):
            self._forget()
        self._bench = self._bench or Bench(request, self._fork)
        self._bench.parts = Parts()
        for worker in self._bench.baselines:
            worker.kernel_ns = 0
        return self._bench

    def _correctness(self, bench: Bench, candidate: Worker, progress: Progress) -> int:
        """Every distribution at every correctness size; the last one twice, which must give the same bytes."""
        with bench.parts.part("draw_cases"):
            cases = bench.cases.rounds()
        for number, case in enumerate(cases):
            progress(f"checking {case.distribution}", 0.5 * number / len(cases))
            slot, label = bench.task.correctness.index(case.axes), f"{case.distribution} {_axes(case.axes)}"
            bind(bench, candidate, slot, case.axes, label, Stage.CORRECTNESS)
            outputs = checked_call(bench, candidate, slot, case, label, Stage.CORRECTNESS)
            if number == len(cases) - 1:
                call(bench, candidate, slot, case, label, Stage.CORRECTNESS)
                if not candidate.outputs(slot).equal(outputs):
                    what = "two calls on the same input gave different bytes: a race, or memory that was not set"
                    raise Rejected(Status.INCORRECT_NUMERICAL, Stage.CORRECTNESS, "not_repeatable", what, label)
        return len(cases)

    def _time(self, bench: Bench, candidate: Worker, index: int, progress: Progress) -> Timed:
        """One workload: warm-up, then pairs until the interval decides or the limit is reached."""
        workload = bench.task.workloads[index]
        progress(f"timing {workload.uuid}", 0.5 + 0.5 * index / len(bench.task.workloads))
        with bench.parts.part("start_worker"):
            bench.start_baselines()
        with bench.parts.part("draw_cases"):
            slot, case = SLOTS_TIMED + index, bench.cases.timed(workload.uuid)
        stream = secret_generator()
        result = Timed(workload)
        fresh = bench.refreshed(case, stream, expected=True)
        bench.warm_up_baselines(slot, fresh)  # first: a task that its own baseline fails judges nobody
        bind(bench, candidate, slot, workload.axes, workload.uuid, Stage.TIMING)
        checked_call(bench, candidate, slot, fresh, workload.uuid, Stage.TIMING)
        deadline = time.monotonic() + WORKLOAD_LIMIT_S
        chosen: set[int] = {0}
        while not _enough(result, deadline):
            if result.pairs % CHECKED_OF == 0:
                chosen |= set(self._random.sample(range(result.pairs, result.pairs + CHECKED_OF), CHECKED))
            check = result.pairs in chosen
            fresh = bench.refreshed(case, stream, expected=check)
            self._pair(bench, candidate, slot, fresh, result, check)
        refuse_foul_play(candidate, result)
        return result

    def _pair(self, bench: Bench, candidate: Worker, slot: int, case: Case, result: Timed, check: bool) -> None:
        """Candidate and baseline on the same content in random order; every second time the baseline's twin too."""
        baseline, twin = bench.baselines
        sides = [candidate, baseline] + ([twin] if result.pairs % 2 == 0 else [])
        self._random.shuffle(sides)
        spent: dict[int, Spent] = {}
        at_return: dict[str, torch.Tensor] = {}
        bench.write(slot, case)
        for side in sides:
            if side is candidate:
                spent[id(side)] = call(bench, side, slot, case, result.workload.uuid, Stage.TIMING)
                at_return = side.outputs(slot).taken() if check else {}
            else:
                spent[id(side)] = bench.call_baseline(side, slot, case)
        result.add(spent[id(candidate)], spent[id(baseline)], spent.get(id(twin)))
        if check:
            inspect(bench, candidate, slot, case, at_return, result.workload.uuid, Stage.RECHECK)
            result.checked += 1

    def _spent(self, started: int, bench: Bench, candidate: Worker) -> tuple[float, dict[str, float]]:
        """Milliseconds in kernels, and in everything else by part; `other` is asking and waiting for the core."""
        kernels = (candidate.kernel_ns + sum(worker.kernel_ns for worker in bench.baselines)) / 1e6
        total = (time.perf_counter_ns() - started) / 1e6
        parts = bench.parts.ms | {"other": total - kernels - sum(bench.parts.ms.values())}
        return kernels, {name: round(ms, 2) for name, ms in parts.items()}

    def _host(self) -> dict[str, str]:
        host = {"pinned_core": str(self._zygote.cpu), "threads": "1", "sandbox": self._zygote.sandbox()}
        with suppress(OSError):
            host["load"] = " ".join(Path("/proc/loadavg").read_text(encoding="utf-8").split()[:3])
        governor = Path(f"/sys/devices/system/cpu/cpu{self._zygote.cpu}/cpufreq/scaling_governor")
        host["governor"] = governor.read_text(encoding="utf-8").strip() if governor.is_file() else "not readable"
        return host


def _enough(result: Timed, deadline: float) -> bool:
    """Whether the pairs decide, or are all that are drawn, or the time is over and they carry an interval."""
    least, most = timing.CHECKPOINTS[0], timing.CHECKPOINTS[-1]
    if result.pairs in timing.CHECKPOINTS and result.decided():
        return True
    return result.pairs == most or (result.pairs >= least and time.monotonic() > deadline)


def _axes(axes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in axes.items())
