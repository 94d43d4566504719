"""What every job's answer begins with."""

from typing import Literal

from toolkits.core.schema import Record

JobState = Literal["queued", "running", "done", "failed", "cancelled"]

JobKind = Literal["compile", "benchmark", "profile"]


class JobAnswer(Record):
    """Common head of everything that may take long. Not done yet: call get_result with `job`."""

    job: str
    kind: JobKind
    state: JobState
    summary: str
    """The whole answer in a few lines of text."""
    error: str = ""
    """Why the job failed, and what to do; empty otherwise."""


class DiagnosticLine(Record):
    where: str
    """file:line:column"""
    message: str
