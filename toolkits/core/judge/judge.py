"""One evaluation from start to verdict. Owns seeds, inputs, expected values, the clock and the list of workloads.

A candidate's worker gets input bytes and nothing else. Correctness comes first, over every distribution; then
candidate and baseline run in randomly interleaved pairs on the same core, on content that is new in every pair. The
judge runs on that core too: waking a worker is then a switch, and what the judge wrote last is as near to either.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from toolkits.core.errors import HarnessError
from toolkits.core.judge.bench import Bench, Parts, warm_key
from toolkits.core.judge.calibration import Calibration
from toolkits.core.judge.closeness import WorstErrors
from toolkits.core.judge.host import Host
from toolkits.core.judge.inputs import Case, InvalidReference
from toolkits.core.judge.inspection import bind, call, checked_call, inspect, load, refuse_foul_play, stand_alone
from toolkits.core.judge.pairs import Pairs
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.results import Rejected, Surroundings, failed, passed
from toolkits.core.judge.timed import Timed
from toolkits.core.judge.workers import Cancelled, Worker, WorkerFailure
from toolkits.core.judge.zygotes import Zygote
from toolkits.core.schema import BenchmarkResult, Stage, Status, Workload

Progress = Callable[[str, float], None]
"""What is happening, and the share done, 0 to 1."""


class Judge:
    """Evaluates requests one after the other; warm between them."""

    def __init__(self, start: Callable[[], Zygote], stop: Callable[[], bool], stop_fd: int) -> None:
        self._start, self._stop, self._stop_fd = start, stop, stop_fd
        self._zygote = start()
        self._bench: Bench | None = None
        self._spare: Worker | None = None
        self._ending: Worker | None = None
        self._calibration = Calibration(self._zygote.cpu)

    def _ordered(self) -> Worker:
        return Worker(self._zygote, self._stop, self._stop_fd)

    def _fork(self) -> Worker:
        worker = self._ordered()
        try:
            return worker.arrive()
        except BaseException:
            worker.close()
            raise

    def evaluate(self, request: EvaluationRequest, progress: Progress) -> BenchmarkResult:
        """The story of one candidate, which may take until `settle` to be dead."""
        self.settle()
        started = time.perf_counter_ns()
        candidate, host = None, Host(self._zygote.cpu, self._pids())
        try:
            if self._stop():
                raise Cancelled
            bench = self._warm(request)
            if request.fresh:
                bench.cases.renew_all()
            with bench.parts.part("start_worker"):
                candidate = self._taken() or self._fork()
                load(candidate, request.candidate, request.candidate_build)
            rounds, timed = self._correctness(bench, candidate, progress), list[Timed]()
            if request.mode == "full" and not request.candidate_build.not_timed:
                host.follow(candidate.pid)
                timed = self._all_timed(request, bench, candidate, progress)
            surroundings = self._surroundings(host, candidate)
            candidate.end()  # while the figures are made up
            result = passed(request, rounds, timed, self._spent(started, bench, candidate), surroundings)
            return result.model_copy(update={"errors": bench.errors.records()})
        except InvalidReference as error:
            why = Rejected(Status.INVALID_REFERENCE, Stage.CORRECTNESS, "bad_reference", str(error))
            return failed(request, why, self._surroundings(host, candidate))
        except (HarnessError, Cancelled):
            self._forget()
            raise
        except Rejected as rejected:
            surroundings = self._surroundings(host, candidate)
            return failed(request, rejected, surroundings, candidate.output() if candidate else "")
        finally:
            if candidate:
                candidate.end()
            self._ending = candidate

    def settle(self) -> None:
        """See the last candidate dead, with all that it started. HarnessError: that cannot be said."""
        ending, self._ending = self._ending, None
        if ending:
            ending.close()

    def prepare(self) -> None:
        """Order the worker of the next candidate, which waits in its box and knows nothing yet, and one box more."""
        with suppress(HarnessError, WorkerFailure, OSError):  # whoever needs it starts one and says what is wrong
            self._spare = self._spare or self._ordered()
            self._zygote.build_ahead()

    def _taken(self) -> Worker | None:
        """The waiting worker, if it still does."""
        worker, self._spare = self._spare, None
        with suppress(HarnessError, OSError):
            if worker and worker.arrive().alive():
                return worker
        if worker:
            with suppress(HarnessError):
                worker.close()
        return None

    def idle(self) -> bool:
        """One step of renewing used cases; False when there is nothing to do."""
        return bool(self._bench) and self._bench.cases.renew_one()

    def close(self) -> None:
        with suppress(HarnessError):
            self.settle()
        self._forget()
        self._end_spare()
        self._zygote.close()

    def _end_spare(self) -> None:
        if self._spare:
            with suppress(HarnessError):  # with its zygote it has ended
                self._spare.close()
        self._spare = None

    def _forget(self) -> None:
        """Drop all that is warm: another task, or a baseline in an unknown state."""
        if self._bench:
            self._bench.close()
        self._bench = None

    def _warm(self, request: EvaluationRequest) -> Bench:
        if not self._zygote.usable():
            self._forget()
            self._end_spare()
            self._zygote.close()
            self._zygote = self._start()
        if self._bench and self._bench.key != warm_key(request):
            self._forget()
        self._bench = self._bench or Bench(request, self._fork)
        self._bench.parts, self._bench.errors = Parts(), WorstErrors()
        for worker in self._bench.baselines:
            worker.kernel_ns = 0
        return self._bench

    def _correctness(self, bench: Bench, candidate: Worker, progress: Progress) -> int:
        """Every distribution at every correctness size; the last one twice, which must give the same bytes."""
        with bench.parts.part("draw_cases"):
            cases = bench.cases.rounds()
            bench.keep_memory(cases)
            bench.admit(cases)
        for number, case in enumerate(cases):
            progress(f"checking {case.distribution}", 0.5 * number / len(cases))
            label = f"{case.distribution} {_axes(case.axes)}"
            slot = bind(bench, candidate, case.axes, label, Stage.CORRECTNESS)
            outputs = checked_call(bench, candidate, slot, case, label, Stage.CORRECTNESS)
            if number == len(cases) - 1:
                call(bench, candidate, slot, case, label, Stage.CORRECTNESS)
                again = candidate.outputs(slot)
                if not bench.task.repeatable:
                    inspect(bench, candidate, slot, case, again.taken(), label, Stage.CORRECTNESS)
                elif not again.equal(outputs):
                    what = "two calls on the same input gave different bytes: a race, or memory that was not set"
                    raise Rejected(Status.INCORRECT_NUMERICAL, Stage.CORRECTNESS, "not_repeatable", what, label)
        return len(cases)

    def _all_timed(
        self, request: EvaluationRequest, bench: Bench, candidate: Worker, progress: Progress
    ) -> list[Timed]:
        timed: list[Timed] = []
        wanted = request.selected()
        for number, workload in enumerate(wanted):
            progress(f"timing {workload.uuid}", 0.5 + 0.5 * number / len(wanted))
            timed.append(self._time(bench, candidate, workload, fresh=request.fresh))
        return timed

    def _time(self, bench: Bench, candidate: Worker, workload: Workload, *, fresh: bool) -> Timed:
        """One workload: hard content first, then pairs until the interval decides or the limit is reached."""
        with bench.parts.part("draw_cases"):
            ready = bench.cases.timed(workload.uuid)
        slot = self._first_calls(bench, candidate, workload, ready, fresh=fresh)
        with bench.parts.part("calibrate"):
            floor = self._calibration.floor(bench.task, workload.axes)
        result = Timed(workload, floor, has_plan=bench.task.plan is not None)
        Pairs(bench, candidate, slot, ready, result).draw(fresh=fresh)
        if result.below_floor():  # nobody is accused by figures that were taken at another time
            self._calibration.again()
            result.floor = self._calibration.floor(bench.task, workload.axes)
        refuse_foul_play(candidate, result)
        return result

    def _first_calls(self, bench: Bench, candidate: Worker, workload: Workload, ready: Case, *, fresh: bool) -> int:
        """What is compiled or loaded late is so now; from here on no process may be started. Returns the slot."""
        with bench.parts.part("start_worker"):
            bench.start_baselines()
        bench.warm_up_baselines(ready)  # first: a task that its own baseline fails judges nobody
        candidate.permit_processes()
        slot = bind(bench, candidate, workload.axes, workload.uuid, Stage.TIMING)
        for special in bench.cases.specials(workload, every=fresh):
            checked_call(bench, candidate, slot, special, f"{workload.uuid}, {special.distribution}", Stage.TIMING)
        easy = bench.write_new(ready)
        call(bench, candidate, slot, easy, workload.uuid, Stage.TIMING)
        for worker in bench.baselines:
            bench.call_baseline(worker, slot, easy)
        stand_alone(candidate, workload.uuid)
        return slot

    def _spent(self, started: int, bench: Bench, candidate: Worker) -> tuple[float, dict[str, float]]:
        """Milliseconds in kernels, and in everything else by part; `other` is asking and waiting for the core."""
        kernels = (candidate.kernel_ns + sum(worker.kernel_ns for worker in bench.baselines)) / 1e6
        total = (time.perf_counter_ns() - started) / 1e6
        parts = bench.parts.ms | {"other": total - kernels - sum(bench.parts.ms.values())}
        return kernels, {name: round(ms, 2) for name, ms in parts.items()}

    def _surroundings(self, host: Host, candidate: Worker | None = None) -> Surroundings:
        """The machine during the evaluation, and what about it makes latencies doubtful."""
        record, warnings = host.report(self._pids() + ([candidate.pid] if candidate and candidate.pid else []))
        return record | {"threads": "1", "sandbox": self._zygote.sandbox()}, warnings

    def _pids(self) -> list[int]:
        waiting = [self._spare] if self._spare else []
        return [worker.pid for worker in (*waiting, *(self._bench.baselines if self._bench else [])) if worker.pid]


def _axes(axes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in axes.items())
