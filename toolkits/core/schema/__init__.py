"""What a kernel experiment is made of. Types only: no I/O, no torch, no MCP.

Field names follow FlashInfer Trace (`axes`, `inputs`, `outputs`, `entry_point`, `destination_passing_style`).
"""

from toolkits.core.schema.builds import CompileResult, Diagnostic, KernelReport
from toolkits.core.schema.devices import Device, GpuState, GpuUser, MemoryLevel, Speeds
from toolkits.core.schema.lesson import Lesson
from toolkits.core.schema.profiles import Change, HotLine, KernelProfile, ProfileReport, Roofline, Stall
from toolkits.core.schema.record import Bottleneck, DType, Json, Record
from toolkits.core.schema.results import (
    BenchmarkResult,
    CheckError,
    Cold,
    Defect,
    Interval,
    Measurement,
    Mode,
    SanitizerFinding,
    Stage,
    Status,
    Verdict,
)
from toolkits.core.schema.solution import BindingName, Launch, Solution, Tunable
from toolkits.core.schema.task import RULE_PARAMETERS, Axis, Check, Distribution, Plan, Task, TensorSpec, Work, Workload

__all__ = [
    "RULE_PARAMETERS",
    "Axis",
    "BenchmarkResult",
    "BindingName",
    "Bottleneck",
    "Change",
    "Check",
    "CheckError",
    "Cold",
    "CompileResult",
    "DType",
    "Defect",
    "Device",
    "Diagnostic",
    "Distribution",
    "GpuState",
    "GpuUser",
    "HotLine",
    "Interval",
    "Json",
    "KernelProfile",
    "KernelReport",
    "Launch",
    "Lesson",
    "Measurement",
    "MemoryLevel",
    "Mode",
    "Plan",
    "ProfileReport",
    "Record",
    "Roofline",
    "SanitizerFinding",
    "Solution",
    "Speeds",
    "Stage",
    "Stall",
    "Status",
    "Task",
    "TensorSpec",
    "Tunable",
    "Verdict",
    "Work",
    "Workload",
]
