"""What the tools answer: small, flat, self-sufficient. Types only; the supervisor and the agents read these too."""

from mcp_server.schema.benchmarks import BenchmarkAnswer, WorkloadLine
from mcp_server.schema.compiles import BuiltKernel, CompileAnswer
from mcp_server.schema.devices import DevicesAnswer
from mcp_server.schema.jobs import DiagnosticLine, JobAnswer, JobKind, JobState
from mcp_server.schema.notes import HistoryAnswer, HistoryLine, LessonAdded, LessonsAnswer, RunAnswer
from mcp_server.schema.profiles import KernelLine, LessonLine, ProfileAnswer
from mcp_server.schema.roles import RoleAnswer, RoleState
from mcp_server.schema.tasks import SolutionLine, TaskDescription, TaskLine, TaskList

__all__ = [
    "BenchmarkAnswer",
    "BuiltKernel",
    "CompileAnswer",
    "DevicesAnswer",
    "DiagnosticLine",
    "HistoryAnswer",
    "HistoryLine",
    "JobAnswer",
    "JobKind",
    "JobState",
    "KernelLine",
    "LessonAdded",
    "LessonLine",
    "LessonsAnswer",
    "ProfileAnswer",
    "RoleAnswer",
    "RoleState",
    "RunAnswer",
    "SolutionLine",
    "TaskDescription",
    "TaskLine",
    "TaskList",
    "WorkloadLine",
]
