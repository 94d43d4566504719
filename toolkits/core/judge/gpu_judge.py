"""One evaluation on a GPU: correctness as on the CPU, over twins of the same memory; then bursts between events.

The judge makes no context of its own on the device: a warden does, and says what it is and what of it is free. The next
candidate comes when the memory of the last one is back.
"""

import time
from collections.abc import Callable

from toolkits.core.errors import HarnessError
from toolkits.core.gpu.device_side import flush_bytes
from toolkits.core.judge.bench import Bench
from toolkits.core.judge.floor import Floor, floor_of
from toolkits.core.judge.gpu_calls import Warden
from toolkits.core.judge.gpu_pairs import GpuPairs
from toolkits.core.judge.gpu_results import no_graphs, speed, warnings
from toolkits.core.judge.gpu_speeds import Figures, device_speeds
from toolkits.core.judge.gpu_timed import GpuTimed
from toolkits.core.judge.inputs import InvalidReference
from toolkits.core.judge.inspection import load
from toolkits.core.judge.judge import Judge, Progress
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.results import Rejected, failed, passed
from toolkits.core.judge.workers import Cancelled, Worker
from toolkits.core.judge.zygotes import Zygote
from toolkits.core.schema import BenchmarkResult, CompileResult, Stage, Status, Task, Workload

KEPT_BYTES = 64 << 20
"""What a driver may keep of a process that has ended."""
MEMORY_BACK_S, POLL_S = 15.0, 0.02
ON_THE_CPU = "checked only: the baseline {} is a {} solution, which runs on the CPU; name one that runs on {}"


class GpuJudge(Judge):
    """Evaluates on one device, one request after the other; warm between them."""

    def __init__(self, start: Callable[[], Zygote], stop: Callable[[], bool], stop_fd: int, device: str) -> None:
        super().__init__(start, stop, stop_fd)
        self._device = device
        self._warden: Warden | None = None
        self._free_bytes = 0
        """Of the device, when the last candidate had gone."""

    def evaluate(self, request: EvaluationRequest, progress: Progress) -> BenchmarkResult:
        """The story of one candidate."""
        started, candidate = time.perf_counter_ns(), None
        request = _all_on_device(request)
        host: dict[str, str] = {}
        try:
            if self._stop():
                raise Cancelled
            bench, warden = self._warm(request), self._watched()
            request = _through_torch(request, warden.no_torch)
            host = self._record(warden)
            self._wait_for_memory(warden)
            if request.fresh:
                bench.cases.renew_all()
            with bench.parts.part("start_worker"):
                candidate = self._taken() or self._fork()
                load(candidate, request.candidate, request.candidate_build)
            rounds = self._correctness(bench, candidate, progress)
            timed = self._timed(request, bench, candidate, progress) if _is_timed(request) else []
            spent = self._spent(started, bench, candidate)
            result = passed(request, rounds, [], spent, (host | no_graphs(timed), warnings(timed)))
            if timed:
                result = result.model_copy(update=speed(timed, stand_in=bool(warden.facts["stand_in"])))
            candidate.kill()
            self._free_bytes = _settled(warden)
            return result.model_copy(update={"errors": bench.errors.records()})
        except InvalidReference as error:
            why = Rejected(Status.INVALID_REFERENCE, Stage.CORRECTNESS, "bad_reference", str(error))
            return failed(request, why, (host, []))
        except (HarnessError, Cancelled):
            self._forget()
            raise
        except Rejected as rejected:
            return failed(request, rejected, (host, []), candidate.output() if candidate else "")
        finally:
            if candidate:
                candidate.close()

    def close(self) -> None:
        if self._warden:
            self._warden.close()
        super().close()

    def _watched(self) -> Warden:
        if self._warden and not self._warden.alive():
            self._warden.close()
            self._warden = None
        self._warden = self._warden or Warden(self._fork(), self._device)
        return self._warden

    def _record(self, warden: Warden) -> dict[str, str]:
        facts = warden.facts
        names = ("name", "architecture", "multiprocessors", "clock_khz", "l2_bytes", "memory_bytes")
        flush = f"{flush_bytes(facts) >> 20} MB written before each cold call"
        own = {"device": self._device, "flush": flush, "sandbox": self._zygote.sandbox()}
        return {**own, **{f"gpu_{name}": str(facts[name]) for name in names}}

    def _timed(self, request: EvaluationRequest, bench: Bench, candidate: Worker, progress: Progress) -> list[GpuTimed]:
        found: list[GpuTimed] = []
        wanted = request.selected()
        for number, workload in enumerate(wanted):
            progress(f"timing {workload.uuid}", 0.5 + 0.5 * number / len(wanted))
            found.append(self._one(bench, candidate, workload, fresh=request.fresh))
        return found

    def _one(self, bench: Bench, candidate: Worker, workload: Workload, *, fresh: bool) -> GpuTimed:
        """One workload: hard content first, then pairs."""
        with bench.parts.part("draw_cases"):
            ready = bench.cases.timed(workload.uuid)
        slot = self._first_calls(bench, candidate, workload, ready, fresh=fresh)
        result = GpuTimed(workload, self._floor(bench.task, workload.axes))
        GpuPairs(bench, candidate, slot, ready, result, self._watched().free_bytes()).draw(fresh=fresh)
        _refuse_foul_play(result)
        return result

    def _floor(self, task: Task, axes: dict[str, int]) -> Floor | None:
        """Measured once, at the first need; a stand-in is as fast as the host happens to be, and has none."""
        warden = self._watched()
        if not task.work or warden.facts["stand_in"]:
            return None
        wanted = ("name", "architecture", "multiprocessors", "clock_khz", "l2_bytes")
        figures = Figures(**{name: warden.facts[name] for name in wanted})
        return floor_of(task, axes, device_speeds(figures, warden.copy_gb_s))

    def _forget(self) -> None:
        super()._forget()
        self._free_bytes = 0

    def _wait_for_memory(self, warden: Warden) -> None:
        """What the last candidate held comes back with its end, but not at once."""
        deadline = time.monotonic() + MEMORY_BACK_S
        while (missing := self._free_bytes - KEPT_BYTES - warden.free_bytes()) > 0:
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{missing >> 20} MB of {self._device} are taken that were free after the last evaluation: who else"
                    " uses it?",
                    "device_failed",
                )
            time.sleep(POLL_S)


def _settled(warden: Warden) -> int:
    """The free memory, once it grows no more."""
    deadline, before = time.monotonic() + MEMORY_BACK_S, -1
    while (now := warden.free_bytes()) > before and time.monotonic() < deadline:
        before = now
        time.sleep(POLL_S)
    return now


def _refuse_foul_play(result: GpuTimed) -> None:
    """The two clocks must agree, and no kernel beats the device."""
    if result.claims_lie():
        what = (
            f"a call takes {result.unexplained_ns() / 1e3:.0f} us of the judge's clock beyond what its events show:"
            " work on another stream that they do not wait for, work after the return, or events tampered with"
        )
        raise Rejected(Status.REWARD_HACK, Stage.TIMING, "clock_mismatch", what, result.workload.uuid)
    if result.works_elsewhere():
        what = "the process is busy when it is only given new content, or asked for an answer that it should have"
        raise Rejected(Status.REWARD_HACK, Stage.TIMING, "clock_mismatch", what, result.workload.uuid)
    if result.below_floor():
        what = result.below_floor_evidence()
        raise Rejected(Status.REWARD_HACK, Stage.TIMING, "clock_mismatch", what, result.workload.uuid)


def _is_timed(request: EvaluationRequest) -> bool:
    return request.mode == "full" and not request.candidate_build.not_timed


def _all_on_device(request: EvaluationRequest) -> EvaluationRequest:
    """With a baseline on the same device: torch code runs there too; what cannot leaves nothing to compare with."""
    device, build = request.candidate_build.device, request.baseline_build
    if build.device == device:
        return _untimed(request, "checked only: plans are not timed on a device yet") if request.task.plan else request
    if build.loads_as == "python" and not build.host:
        return _all_on_device(
            request.model_copy(update={"baseline_build": build.model_copy(update={"device": device})})
        )
    why = ON_THE_CPU.format(request.baseline_name, request.baseline.toolkit, device)
    return _untimed(request, why)


def _through_torch(request: EvaluationRequest, no_torch: str) -> EvaluationRequest:
    """Python solutions reach the device through torch alone: without it nobody is to blame, and nobody is compared."""
    if no_torch and request.candidate_build.loads_as == "python":
        raise HarnessError(no_torch, "device_failed")
    if no_torch and request.baseline_build.loads_as == "python":
        return _untimed(request, f"checked only: the baseline {request.baseline_name} needs torch; {no_torch}")
    return request


def _untimed(request: EvaluationRequest, why: str) -> EvaluationRequest:
    build: CompileResult = request.candidate_build
    return request.model_copy(
        update={"candidate_build": build.model_copy(update={"not_timed": build.not_timed or why})}
    )
