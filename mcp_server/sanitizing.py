"""Mode `sanitize` of a benchmark: what the sanitizers saw, as a result like any other."""

from pathlib import Path

from mcp_server.experiment import Experiment
from mcp_server.jobs import Say
from mcp_server.unjudged import not_compiled, not_run
from toolkits.core import sanitize
from toolkits.core.causes import Cause
from toolkits.core.device import lease
from toolkits.core.schema import BenchmarkResult, CompileResult, SanitizerFinding, Stage, Status


async def sanitized(experiment: Experiment, builds: Path, say: Say) -> BenchmarkResult:
    """PASSED where nothing is found; it says nothing of values and times."""
    say("waiting for the device", 0)
    async with lease("cpu"):  # it would disturb whoever is timed meanwhile
        say("sanitizing", 0)
        seen = await sanitize.sanitized(experiment.task, experiment.solution, builds)
    if seen.build:
        return not_compiled(experiment, seen.build)
    if seen.skipped:
        build = CompileResult(
            ok=True, solution=experiment.solution.id, toolkit=experiment.solution.toolkit, not_timed=seen.skipped
        )
        return not_run(experiment, build)
    clean = BenchmarkResult(
        task=experiment.task.name,
        solution=experiment.solution.id,
        mode=experiment.mode,
        status=Status.PASSED,
        stage=Stage.DONE,
        baseline=experiment.against,
        rounds=seen.rounds,
        detail=" and ".join(seen.tools),
    )
    if not (seen.findings or seen.ended):
        return clean
    return clean.model_copy(
        update={
            "status": Status.RUNTIME_ERROR,
            "stage": Stage.CORRECTNESS,
            "cause": Cause.SANITIZER,
            "hint": Cause.SANITIZER.hint,
            "detail": _told(seen.findings) or seen.ended,
            "workload": seen.findings[0].round if seen.findings else "",
            "findings": seen.findings[: sanitize.ENOUGH],
            "found": len(seen.findings),
        }
    )


def _told(findings: list[SanitizerFinding]) -> str:
    """The first finding in a line, and how many there are."""
    if not findings:
        return ""
    first, more = findings[0], len(findings) - 1
    rest = f"; and {more} more" if more else ""
    return f"{first.kind} at {first.file}:{first.line} in {first.function} ({first.tool}): {first.detail}{rest}"
