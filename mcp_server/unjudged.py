"""Results of candidates that no judge has met: they did not build, cannot run here, or the lab itself failed."""

from typing import Any

from mcp_server.excerpts import clip, first_error
from mcp_server.experiment import Experiment
from toolkits.core.causes import Cause, hint
from toolkits.core.errors import HarnessError
from toolkits.core.schema import BenchmarkResult, CompileResult, Stage, Status

MAX_DETAIL = 900


def not_compiled(experiment: Experiment, build: CompileResult) -> BenchmarkResult:
    """A candidate that does not build is judged too: its result is COMPILE_ERROR."""
    return _result(
        experiment,
        status=Status.COMPILE_ERROR,
        stage=Stage.COMPILE,
        cause=Cause.COMPILE_ERROR,
        detail=first_error(build.diagnostics, experiment.solution.sources) or clip(build.log, MAX_DETAIL),
        hint=Cause.COMPILE_ERROR.hint,
        diagnostics=build.diagnostics,
    )


def not_run(experiment: Experiment, build: CompileResult) -> BenchmarkResult:
    """A candidate that builds, for a device that this machine has not: neither good nor bad."""
    return _result(
        experiment,
        status=Status.SKIPPED,
        stage=Stage.LOAD,
        detail=build.not_timed,
        not_timed=build.not_timed,
        diagnostics=build.diagnostics,
    )


def not_judged(experiment: Experiment, error: HarnessError) -> BenchmarkResult:
    """The lab failed, and not only once: the record of that, which blames nobody and says what to do."""
    return _result(
        experiment,
        status=Status.HARNESS_ERROR,
        stage=Stage.LOAD,
        cause=error.cause,
        detail=str(error),
        hint=hint(error.cause),
    )


def _result(experiment: Experiment, **found: Any) -> BenchmarkResult:
    """Whose result it is, and what was found."""
    return BenchmarkResult(
        task=experiment.task.name,
        solution=experiment.solution.id,
        mode=experiment.mode,
        baseline=experiment.against,
        **found,
    )
