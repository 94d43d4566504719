"""What compilers say of a solution."""

from pathlib import Path
from typing import Literal

from toolkits.core.schema.record import Record


class Diagnostic(Record):
    """One message of a compiler."""

    severity: Literal["error", "warning", "note"]
    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None


class KernelReport(Record):
    """What a compiler made of one GPU kernel for one architecture. `None`: the toolchain does not tell, never zero."""

    name: str
    """As written in the source, without mangling."""
    target: str
    """Such as sm_90a or gfx942."""
    registers: int | None = None
    """Vector registers a thread."""
    accumulation_registers: int | None = None
    """AMD's AGPRs a lane."""
    scalar_registers: int | None = None
    """AMD's SGPRs a wavefront."""
    spill_stores_bytes: int | None = None
    spill_loads_bytes: int | None = None
    spilled_registers: int | None = None
    """Where the toolchain counts registers instead of bytes."""
    stack_bytes: int | None = None
    """Private memory a thread (scratch): spills and local arrays."""
    shared_bytes: int | None = None
    """Static shared memory (LDS) a block."""
    dynamic_shared_bytes: int | None = None
    """What the launch adds, where the source or its metadata says it."""
    barriers: int | None = None
    threads: int | None = None
    """Threads of a block that the figures below assume."""
    occupancy: float | None = None
    """Resident warps (wavefronts) of what the hardware holds, 0 to 1."""
    occupancy_limit: str = ""
    """What keeps it there: registers, shared memory, threads, blocks."""
    instructions: dict[str, int] = {}
    """How often each kind of instruction stands in the machine code: HGMMA, FFMA, LDG.128, STL, v_mfma ..."""
    peak_registers: int | None = None
    """Most registers alive at once."""
    peak_line: str = ""
    """`file:line` where that is."""
    notes: list[str] = []
    """What stands out, worst first: spills, narrow loads, a launch that cannot succeed."""


class CompileResult(Record):
    """What building a solution gave."""

    ok: bool
    solution: str
    """Content hash of the solution."""
    toolkit: str
    artifact: Path | None = None
    """The shared library, or the folder of Python sources."""
    command: list[str] = []
    diagnostics: list[Diagnostic] = []
    """Errors first, in the compiler's order; at most 20."""
    log: str = ""
    """Head and tail of the compiler's output."""
    cached: bool = False
    build_ms: float = 0.0
    toolchain: str = ""
    """Name and version of the compiler."""
    loads_as: Literal["native", "python"] = "native"
    """How a worker loads the artifact: a shared library with a C function, or a folder of Python sources."""
    environment: dict[str, str] = {}
    """Variables that a worker sets before it loads the artifact."""
    host: str = ""
    """Python file of the artifact that a worker loads in place of the entry file; empty: the entry file itself."""
    device: str = ""
    """Where its kernels run, such as cuda:0: workers keep the tensors there; empty: in the CPU's memory."""
    not_timed: str = ""
    """Why this build is checked but never timed: it runs on an emulation, for example; empty: it is timed."""
    kernels: list[KernelReport] = []
    """GPU kernels of the solution, one entry an architecture each."""
