"""The answer of compile."""

from mcp_server.schema.jobs import DiagnosticLine, JobAnswer
from toolkits.core.schema import Record


class BuiltKernel(Record):
    """What a compiler made of one GPU kernel for one architecture; what is absent it does not tell."""

    name: str
    target: str
    registers: int | None = None
    """Vector registers a thread."""
    more_registers: str = ""
    """AMD's accumulation and scalar registers."""
    spills: str = ""
    """Registers that did not fit: bytes stored and loaded a thread, or their number."""
    stack_bytes: int | None = None
    """Local memory (scratch) a thread."""
    shared_bytes: int | None = None
    """Shared memory (LDS) a block, static and what the launch adds."""
    threads: int | None = None
    """Of the block that the occupancy is for."""
    occupancy: float | None = None
    """Resident warps of what the hardware holds, 0 to 1."""
    occupancy_limit: str = ""
    instructions: str = ""
    """How often each notable kind stands in the machine code."""
    peak: str = ""
    """Most registers alive at once, and where."""
    notes: list[str] = []
    """What stands out, worst first; what was said of an earlier kernel is not repeated."""


class CompileAnswer(JobAnswer):
    ok: bool | None = None
    solution: str = ""
    kernels: list[BuiltKernel] = []
    """GPU kernels, one an architecture each."""
    more_kernels: int = 0
    """Beyond those listed; the log has them."""
    not_timed: str = ""
    """Why this machine checks the build at most and never times it."""
    diagnostics: list[DiagnosticLine] = []
    log_path: str = ""
    cached: bool = False
    build_ms: float = 0.0
