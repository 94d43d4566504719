"""Every workload that was asked for is accounted for by its id. Runs in the server, so that no judge can forget one.

Knows no process: a pure function from what was asked and what came back to what may be believed.
"""

from collections.abc import Iterator, Sequence

from toolkits.core.causes import Cause
from toolkits.core.schema import BenchmarkResult, Measurement, Status, Workload

NO_SPEED: dict[str, object] = {
    **dict.fromkeys(("verdict", "speedup", "arithmetic_mean", "worst")),
    "worst_workload": "",
    "below_one": 0,
}


def accounted(result: BenchmarkResult, wanted: Sequence[Workload], of_task: int) -> BenchmarkResult:
    """The result with a measurement for each wanted workload, or a RUNTIME_ERROR if a pass does not cover them all."""
    result = result.model_copy(update={"total": len(wanted), "of_task": of_task if wanted else 0})
    if result.status is not Status.PASSED or result.not_timed:
        return _not_passed(result, wanted)
    if problem := _problem(result, wanted):
        lost = {"status": Status.RUNTIME_ERROR, "cause": Cause.MISSING_WORKLOAD, "detail": problem}
        lost |= {"hint": Cause.MISSING_WORKLOAD.hint}
        return _not_passed(result.model_copy(update=lost), wanted)
    return result


def _problem(result: BenchmarkResult, wanted: Sequence[Workload]) -> str:
    """What is missing, doubled, strange or not passed in a result that calls itself a pass; empty: nothing."""
    got, ids = [m.workload for m in result.measurements], [w.uuid for w in wanted]
    missing = [uuid for uuid in ids if uuid not in got]
    strange = [uuid for uuid in got if uuid not in ids] + [uuid for uuid in set(got) if got.count(uuid) > 1]
    bad = [m.workload for m in result.measurements if m.status is not Status.PASSED]
    found = (("no measurement of", missing), ("measurements nobody asked for:", strange), ("not passed:", bad))
    return "; ".join(f"{what} {', '.join(uuids)}" for what, uuids in found if uuids)


def _not_passed(result: BenchmarkResult, wanted: Sequence[Workload]) -> BenchmarkResult:
    """No speed is claimed; what was measured stays, the rest says why it was not."""
    measurements = list(_lines(result, wanted))
    passed = sum(m.status is Status.PASSED for m in measurements)
    return result.model_copy(update=NO_SPEED | {"measurements": measurements, "passed": passed})


def _lines(result: BenchmarkResult, wanted: Sequence[Workload]) -> Iterator[Measurement]:
    known = {m.workload: m for m in result.measurements}
    place = f"{result.status} at {result.stage}" + (f" on {result.workload}" if result.workload else "")
    why = f"not timed: {result.not_timed or place}"
    for workload in wanted:
        here = result.workload.partition(",")[0] == workload.uuid
        missing = result.cause == str(Cause.MISSING_WORKLOAD) or here
        yield known.get(workload.uuid) or Measurement(
            workload=workload.uuid,
            axes=workload.axes,
            status=result.status if missing else Status.SKIPPED,
            cause=result.cause if missing else "",
            detail="" if missing else why,
        )
