"""What a job or an evaluation left, as its answer: the shape that its kind has, whoever asks again.

The whole record stays in the ledger and in the log file; nothing here may grow with the size of a kernel's output.
"""

from typing import TypeVar

from pydantic import ConfigDict

from mcp_server.answers_benchmark import judged
from mcp_server.ledger import EvaluationRow, JobRow
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer, JobKind, ProfileAnswer
from toolkits.core.schema import Json, Status


class AnyJobAnswer(JobAnswer):
    """The answer of a compile, a benchmark or a profile, as its `kind` says; their fields follow the common head."""

    model_config = ConfigDict(extra="allow")


ANSWERS: dict[JobKind, type[JobAnswer]] = {
    "compile": CompileAnswer,
    "benchmark": BenchmarkAnswer,
    "profile": ProfileAnswer,
}


A = TypeVar("A", bound=JobAnswer)


def of_job(row: JobRow) -> JobAnswer:
    """The answer that the job left, or its state and what to do next."""
    return of_kind(ANSWERS[row.kind], row)


def of_kind(model: type[A], row: JobRow) -> A:
    if row.answer is not None:
        return model.model_validate(row.answer)
    head: Json = {"job": row.id, "kind": row.kind, "state": row.state, "error": row.error, "summary": _unfinished(row)}
    if model is BenchmarkAnswer and row.state == "cancelled":
        head["status"] = Status.CANCELLED
    return model.model_validate(head)


def _unfinished(row: JobRow) -> str:
    if row.state == "failed":
        return f"{row.kind} job {row.id} failed: {row.error}"
    if row.state == "cancelled":
        return f"{row.kind} job {row.id} was cancelled; nothing was recorded."
    return f'{row.kind} job {row.id} is {row.state}: call get_result(id="{row.id}") to wait for it.'


def of_evaluation(row: EvaluationRow) -> BenchmarkAnswer:
    return judged(row.job, row.result, row.id)
