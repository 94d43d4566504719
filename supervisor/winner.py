"""A claim becomes a result, or is revoked: re-measured from its stored sources, one decision a row."""

from collections.abc import Sequence

from supervisor import budget, verify
from supervisor.run import HARNESS_TRIES, Run
from supervisor.schema import Evaluation, RunState, Verification
from supervisor.state import candidates, promising
from toolkits.core.errors import HarnessError
from toolkits.core.schema import Status


async def verify_claims(run: Run) -> None:
    """Re-measure the best claim from its stored sources; if it does not hold, the next best while the budget lasts.

    A claim that was begun is completed even when an interruption used up the time.
    """
    await _compare_leaders(run)
    while not _promoted(run.state):
        claim = _open_claim(run.state) or await _next_claim(run)
        if claim is None:
            return
        await _remeasure(run, claim)


async def _compare_leaders(run: Run) -> None:
    """A second session for each leader that cannot be told from the first, so that luck does not choose."""
    if not run.state.finalists and not run.state.verifications:
        rivals = _rivals(promising(run.state))[: budget.finals(run.config)]
        if all(e.faster for e in rivals) and len(rivals) < 2:
            return
        await run.decide("finalists", {"solutions": [e.solution for e in rivals], "evidence": [e.id for e in rivals]})
    for solution in _not_compared(run.state):
        if not budget.may_compare(run.config, run.state, run.elapsed_s):
            return
        run.doing(f"a second session for {solution}, one of {len(run.state.finalists)} leaders")
        await run.lab.evaluate(run.facts.name, run.stored(solution), fresh=True)
        await run.sync()


def _rivals(leaders: Sequence[Evaluation]) -> list[Evaluation]:
    """The first, and those whose interval reaches into its own."""
    first = leaders[0].speedup if leaders else None
    return [e for e in leaders if first and e.speedup and e.speedup.high >= first.low]


def _not_compared(state: RunState) -> list[str]:
    """Finalists without a second session; none any more once a claim is made."""
    done = {e.solution for e in state.evaluations if e.purpose == "final"}
    return [] if state.verifications else [solution for solution in state.finalists if solution not in done]


def _promoted(state: RunState) -> bool:
    return any(v.verdict == "promoted" for v in state.verifications)


def _open_claim(state: RunState) -> Verification | None:
    last = state.verifications[-1] if state.verifications else None
    return last if last and last.verdict == "open" else None


async def _next_claim(run: Run) -> Verification | None:
    top = next(iter(candidates(run.state)), None)
    if top is None or not budget.may_verify(run.config, run.state, run.elapsed_s):
        return None
    await run.decide("verification_started", {"solution": top.solution, "claim": top.id})
    return run.state.verifications[-1]


async def _remeasure(run: Run, claim: Verification) -> None:
    harness_errors = 0
    while (verdict := verify.judge(measured := _judged(run, claim), budget.VERIFICATIONS)) == "open":
        run.doing(
            f"re-measuring {claim.solution} from its stored sources, {len(measured) + 1} of {budget.VERIFICATIONS}"
        )
        await run.lab.evaluate(run.facts.name, run.stored(claim.solution), fresh=True)
        await run.sync()
        harness_errors += run.state.evaluations[-1].status == Status.HARNESS_ERROR
        if harness_errors >= HARNESS_TRIES:
            raise HarnessError(
                "the lab fails on the winner's re-measures: run `kernel-lab doctor`, then repeat the command"
            )
    ratios = [e.speedup for e in measured if e.speedup]
    await run.decide(
        "winner" if verdict == "promoted" else "revoked",
        {
            "solution": claim.solution,
            "claim": claim.claim,
            "evaluations": [e.id for e in measured],
            "speedup": verify.combined(ratios).model_dump() if ratios else None,
            "why": _why(verdict, measured),
        },
    )


def _judged(run: Run, claim: Verification) -> list[Evaluation]:
    """The claim's re-measures so far, without those in which the lab itself failed."""
    ids = run.state.verifications[-1].evaluations
    return [e for e in run.state.evaluations if e.id in ids and e.status != Status.HARNESS_ERROR]


def _why(verdict: str, measured: Sequence[Evaluation]) -> str:
    failed = next((e for e in measured if not e.timed), None)
    if failed:
        return f"re-measure {failed.id} gave {failed.status} {failed.cause}".strip()
    if verdict == "promoted":
        return f"all {len(measured)} re-measures passed, and the interval of their mean lies above 1.0"
    faster = sum(e.faster for e in measured)
    if faster < verify.fewest_faster(len(measured)):
        return f"the judge calls only {faster} of the {len(measured)} re-measures faster"
    return f"the interval of the {len(measured)} re-measures' mean does not lie above 1.0"
