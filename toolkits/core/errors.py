"""Mistakes of the caller and failures of this machine.

LabError                    shown to the agent as it stands, so the message says what to do instead
├── NotInWorkspace          a task, solution, job, run or path that this workspace does not have
├── InvalidInput            a file or an argument that does not read as what it should be
├── ToolkitUnavailable      the toolkit does not exist, or this machine lacks what it needs
├── BudgetExhausted         the run or the role has spent what it was given
└── HarnessError            the lab itself failed (judge died, disk full): never blamed on the candidate

A solution that fails is not an error here: it is a result with a status.
"""


class LabError(Exception):
    """Shown to the agent as it stands, so the message says what to do instead."""


class NotInWorkspace(LabError):
    """The caller named a task, solution, job, run or path that the workspace does not have."""


class InvalidInput(LabError):
    """A file or an argument does not read as what it should be."""


class ToolkitUnavailable(LabError):
    """The toolkit does not exist or this machine lacks what it needs."""


class BudgetExhausted(LabError):
    """The run or the role has spent what it was given."""


class HarnessError(LabError):
    """The lab itself failed; the candidate is not to blame. `cause` is one of `causes.py`."""

    def __init__(self, message: str, cause: str = "lab_failed") -> None:
        super().__init__(message)
        self.cause = cause
