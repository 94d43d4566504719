"""From what compilers left of a kernel to its report, and to the launches that cannot succeed. Pure functions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkits.core.gpu.arch import LARGEST_CLUSTER, PORTABLE_CLUSTER, THREAD_REGISTERS, Architecture, architecture
from toolkits.core.gpu.cubin import Limits
from toolkits.core.gpu.launches import MAY_RAISE, Launch, defined
from toolkits.core.gpu.memory_notes import memory_notes
from toolkits.core.gpu.names import base
from toolkits.core.gpu.occupancy import occupancy, registers_of_block
from toolkits.core.gpu.ptxas import Resources
from toolkits.core.gpu.sass import Instruction, mix, peak
from toolkits.core.schema import Diagnostic, KernelReport

MANY_REGISTERS = 128
"""From here on it is worth a third of a second to ask where they are all alive."""
_BLOCKS = (128, 256, 512, 1024)
_MAY_CLUSTER = re.compile(r"NonPortableClusterSizeAllowed")


@dataclass(frozen=True)
class Kernel:
    """All that is known of one kernel on one target."""

    name: str
    resources: Resources
    limits: Limits = field(default_factory=Limits)
    code: Sequence[Instruction] = ()
    """Empty: nobody disassembled it."""
    alive: Mapping[int, int] = field(default_factory=dict[int, int])

    @property
    def spills(self) -> bool:
        return bool(self.resources.spill_stores_bytes or self.resources.spill_loads_bytes)

    @property
    def crowded(self) -> bool:
        """Whether it is worth knowing where its registers are all alive."""
        return self.spills or (self.resources.registers or 0) >= MANY_REGISTERS


def report(kernel: Kernel, launches: Sequence[Launch]) -> KernelReport:
    """What to show of a kernel; `launches` are those of this kernel."""
    has, of = kernel.resources, architecture(kernel.resources.target)
    threads = max((launch.threads for launch in launches if launch.threads), default=kernel.limits.threads)
    dynamic = max((launch.dynamic_shared_bytes or 0 for launch in launches), default=0)
    fits = _occupancy(of, kernel, threads, dynamic)
    most = peak(kernel.code, kernel.alive)
    return KernelReport(
        name=kernel.name,
        target=has.target,
        registers=has.registers,
        spill_stores_bytes=has.spill_stores_bytes,
        spill_loads_bytes=has.spill_loads_bytes,
        stack_bytes=has.stack_bytes,
        shared_bytes=has.shared_bytes,
        dynamic_shared_bytes=dynamic if any(one.dynamic_shared_bytes is not None for one in launches) else None,
        barriers=has.barriers,
        threads=threads,
        occupancy=round(fits[0], 4) if fits else None,
        occupancy_limit=fits[1] if fits else "",
        instructions=mix(kernel.code),
        peak_registers=most[0] if most else None,
        peak_line=most[1] if most else "",
        notes=[*_spill_notes(kernel), *memory_notes(kernel.code), *_table(of, kernel, threads, dynamic)],
    )


def _occupancy(of: Architecture | None, kernel: Kernel, threads: int | None, dynamic: int) -> tuple[float, str] | None:
    if not of or not threads or threads > of.block_threads or kernel.resources.registers is None:
        return None
    found = occupancy(of, threads, kernel.resources.registers, kernel.resources.shared_bytes + dynamic)
    return found.share, found.limit


def _spill_notes(kernel: Kernel) -> list[str]:
    has = kernel.resources
    if kernel.spills:
        advice = (
            ""
            if has.registers == THREAD_REGISTERS
            else ", or let it have more: __launch_bounds__ and -maxrregcount cap them"
        )
        return [
            f"spills {has.spill_stores_bytes} bytes to local memory and {has.spill_loads_bytes} back, with"
            f" {has.registers} registers a thread: keep fewer values alive{advice}"
        ]
    if has.stack_bytes and any(one.base in ("LDL", "STL") for one in kernel.code):
        return [f"{has.stack_bytes} bytes of local memory a thread without spills: an array is indexed at run time"]
    return []


def _table(of: Architecture | None, kernel: Kernel, threads: int | None, dynamic: int) -> list[str]:
    """Occupancy for common block sizes, where the source does not say how it is launched."""
    if not of:
        return [f"no table of limits for {kernel.resources.target}: occupancy and launches are not checked"]
    if threads:
        return []
    sizes = [(size, _occupancy(of, kernel, size, dynamic)) for size in _BLOCKS]
    shown = ", ".join(f"{size}: {found[0]:.0%}" for size, found in sizes if found and found[0])
    return [f"occupancy by threads of a block: {shown}"] if shown else []


def failures(kernel: Kernel, launches: Sequence[Launch], sources: Mapping[str, str]) -> list[Diagnostic]:
    """Launches of this kernel that the named architecture will refuse, each with its line."""
    of = architecture(kernel.resources.target)
    if not of:
        return []
    text = "\n".join(sources.values())
    return [
        Diagnostic(
            severity="error",
            message=f"launch of {kernel.name} would fail on {kernel.resources.target}: {why}",
            file=launch.file,
            line=launch.line,
        )
        for launch in launches
        for why in (*_too_many_threads(of, kernel, launch), *_too_much_shared(of, kernel, launch, text))
    ] + _too_large_cluster(kernel, sources)


def _too_many_threads(of: Architecture, kernel: Kernel, launch: Launch) -> list[str]:
    threads, bound = launch.threads or 0, kernel.limits.threads
    if threads > of.block_threads:
        return [f"{threads} threads a block, at most {of.block_threads} are possible"]
    if bound and threads > bound:
        return [f"{threads} threads a block, but __launch_bounds__ promised at most {bound}"]
    needs = registers_of_block(threads, kernel.resources.registers or 0)
    if needs > of.registers:
        return [
            f"{threads} threads with {kernel.resources.registers} registers each need {needs} registers a block,"
            f" {of.registers} exist: add __launch_bounds__({threads}) or launch smaller blocks"
        ]
    return []


def _too_much_shared(of: Architecture, kernel: Kernel, launch: Launch, text: str) -> list[str]:
    dynamic, static = launch.dynamic_shared_bytes or 0, kernel.resources.shared_bytes
    if static + dynamic > of.block_shared_bytes:
        return [
            f"{static} bytes of static and {dynamic} of dynamic shared memory, a block has at most"
            f" {of.block_shared_bytes}"
        ]
    if dynamic and static + dynamic > of.default_shared_bytes and not MAY_RAISE.search(text):
        return [
            f"{static + dynamic} bytes of shared memory are more than the {of.default_shared_bytes} that every kernel"
            " gets: call cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) first"
        ]
    return []


def _too_large_cluster(kernel: Kernel, sources: Mapping[str, str]) -> list[Diagnostic]:
    cluster = kernel.limits.cluster
    allowed = any(_MAY_CLUSTER.search(text) for text in sources.values())
    if cluster <= PORTABLE_CLUSTER or (cluster <= LARGEST_CLUSTER and allowed):
        return []
    file, line = defined(sources, base(kernel.name))
    more = (
        f", {PORTABLE_CLUSTER} without cudaFuncAttributeNonPortableClusterSizeAllowed"
        if cluster <= LARGEST_CLUSTER
        else ""
    )
    return [
        Diagnostic(
            severity="error",
            message=f"launch of {kernel.name} would fail on {kernel.resources.target}: clusters of {cluster} blocks, at"
            f" most {LARGEST_CLUSTER} are possible{more}",
            file=file,
            line=line,
        )
    ]


def of_kernel(kernel: Kernel, launches: Sequence[Launch]) -> list[Launch]:
    return [launch for launch in launches if launch.kernel == base(kernel.name)]
