"""From figures to one line: what limits a GPU kernel, or a program's use of the GPU, and the evidence. Pure."""

from toolkits.core.schema import Bottleneck, KernelProfile, ProfileReport

HIGH, LOW = 0.6, 0.35
"""Of peak: above the first a unit limits; below the second it idles. Nsight Compute's own advice draws 60 %, too."""
SHORT_US = 5.0
"""Launching takes 2 to 5 us: a shorter kernel is mostly launch."""
FEW_WARPS = 0.3
FEW_WAVES = 0.75
"""Persistent kernels fill the device just once, on purpose."""
IDLE_DEVICE = 0.5
SOME = 0.2
"""Of lanes, sectors or branches lost: worth naming."""


def judged(kernel: KernelProfile) -> KernelProfile:
    """The kernel with its bottleneck, the evidence in one line, and its symptoms."""
    bottleneck, evidence = _limit(kernel)
    symptoms = list(dict.fromkeys([*_symptoms(kernel, bottleneck), *kernel.symptoms]))
    line = "; ".join(part for part in (f"{bottleneck}: {evidence}", _roof(kernel), *_also(kernel)) if part)
    return kernel.model_copy(update={"bottleneck": bottleneck, "verdict": line, "symptoms": symptoms})


def summarised(report: ProfileReport) -> ProfileReport:
    """The whole report's verdict: the host's where the device waits, else that of the kernel with most time."""
    if not report.kernels:
        return report
    first = report.kernels[0]
    bottleneck, verdict, symptoms = first.bottleneck, _first(report, first), list(first.symptoms)
    if report.busy_share is not None and report.busy_share < IDLE_DEVICE:
        mean = (report.duration_us or 0.0) / (report.launches or 1)
        gaps = (
            f"some kernel ran in {report.busy_share:.0%} of the {(report.span_us or 0) / 1e3:.1f} ms between the first"
            f" and the last of {report.launches} launches, {mean:.1f} us each on average"
        )
        bottleneck, verdict, symptoms = "host", f"host: {gaps}; most time on the device: {verdict}", ["launch_gaps"]
    return report.model_copy(update={"bottleneck": bottleneck, "verdict": verdict, "symptoms": symptoms})


def _first(report: ProfileReport, kernel: KernelProfile) -> str:
    if len(report.kernels) == 1:
        return kernel.verdict
    share = f", {kernel.share:.0%} of the kernel time" if kernel.share is not None else ""
    return f"{short(kernel.name)} ({kernel.launches} launches{share}): {kernel.verdict}"


def short(name: str, width: int = 60) -> str:
    """A kernel's name without its argument list, head and tail: templates make names of kilobytes."""
    plain = name.removeprefix("void ").replace("(anonymous namespace)::", "").split("(", 1)[0] or name
    return plain if len(plain) <= width else f"{plain[: width * 2 // 3]}...{plain[3 - width // 3 :]}"


def _limit(kernel: KernelProfile) -> tuple[Bottleneck, str]:
    memory = _most(kernel)
    compute = max(kernel.compute_share or 0.0, kernel.tensor_share or 0.0)
    if memory[0] >= HIGH and memory[0] >= compute:
        return "memory", _memory(kernel, memory)
    if compute >= HIGH:
        return "compute", _compute(kernel, compute)
    if kernel.waves is not None and kernel.waves < FEW_WAVES:
        return "launch", f"{_shape(kernel)} fill {kernel.waves:.2f} of the device once, the rest of it idles"
    if kernel.duration_us is not None and kernel.duration_us < SHORT_US:
        return "launch", f"{kernel.duration_us:.1f} us a launch, about what launching takes; fuse it or use a graph"
    if kernel.occupancy_possible is not None and kernel.occupancy_possible <= LOW:
        return "occupancy", _possible(kernel, kernel.occupancy_possible)
    if kernel.occupancy is not None and kernel.occupancy < FEW_WARPS:
        return "occupancy", f"only {kernel.occupancy:.0%} of the warps are resident{_allowed(kernel)}"
    if kernel.stalls:
        return "latency", _stalled(kernel, memory, compute)
    return _by_less(kernel, memory, compute)


def _by_less(kernel: KernelProfile, memory: tuple[float, str], compute: float) -> tuple[Bottleneck, str]:
    if memory[1] and (kernel.compute_share is not None or kernel.tensor_share is not None):
        return "latency", f"neither memory ({memory[0]:.0%} of {memory[1]}) nor compute ({compute:.0%}) is used up"
    roof = kernel.roofline
    if roof and roof.share >= LOW:
        return roof.bound, f"{roof.share:.0%} of what the {roof.bound} roof allows"
    seen = f"{kernel.duration_us:.1f} us a launch" if kernel.duration_us is not None else "no times"
    return "unknown", f"{seen}, and no throughputs in the report: record counters to know what limits it"


def _most(kernel: KernelProfile) -> tuple[float, str]:
    """The busiest memory unit: its share of peak, and its name (empty: none was measured)."""
    named = {
        "device memory": kernel.dram_share,
        "L2": kernel.l2_share,
        "L1/TEX": kernel.l1_share,
        "a memory unit": kernel.memory_share,
    }
    found = [(share, name) for name, share in named.items() if share is not None]
    return max(found, key=lambda item: item[0], default=(0.0, ""))


def _memory(kernel: KernelProfile, most: tuple[float, str]) -> str:
    rate = f" ({kernel.dram_gb_s:.0f} GB/s)" if kernel.dram_gb_s is not None and most[1] == "device memory" else ""
    hits = f", {kernel.l2_hit_share:.0%} L2 hits" if kernel.l2_hit_share is not None else ""
    compute = f", compute {kernel.compute_share:.0%}" if kernel.compute_share is not None else ""
    return f"{most[1]} at {most[0]:.0%} of peak{rate}{hits}{compute}"


def _compute(kernel: KernelProfile, share: float) -> str:
    pipes = kernel.pipes | ({"tensor": kernel.tensor_share} if kernel.tensor_share is not None else {})
    busiest = max(pipes.items(), key=lambda item: item[1], default=None)
    pipe = f", the {busiest[0]} pipe at {busiest[1]:.0%}" if busiest else ""
    memory = f", memory {kernel.memory_share:.0%}" if kernel.memory_share is not None else ""
    return f"compute units at {share:.0%} of peak{pipe}{memory}"


def _possible(kernel: KernelProfile, possible: float) -> str:
    limit = f", limited by {' and '.join(kernel.occupancy_limits)}" if kernel.occupancy_limits else ""
    held = f" ({kernel.registers} a thread)" if kernel.registers and "registers" in kernel.occupancy_limits else ""
    return f"at most {possible:.0%} of the warps fit{limit}{held}"


def _allowed(kernel: KernelProfile) -> str:
    if kernel.occupancy_possible is None:
        return ""
    return f" where {kernel.occupancy_possible:.0%} would fit: blocks end early or are spread unevenly"


def _stalled(kernel: KernelProfile, memory: tuple[float, str], compute: float) -> str:
    top = kernel.stalls[0]
    issue = f", an instruction issues in {kernel.issue_share:.0%} of the cycles" if kernel.issue_share else ""
    used = f"; memory {memory[0]:.0%}, compute {compute:.0%} of peak" if memory[1] else ""
    return f"warps wait {top.share:.0%} of their time for {top.reason}{issue}{used}"


def _shape(kernel: KernelProfile) -> str:
    if not kernel.grid or not kernel.block:
        return "the blocks"
    blocks, threads = (x * y * z for x, y, z in (kernel.grid, kernel.block))
    return f"{blocks} blocks of {threads} threads"


def _roof(kernel: KernelProfile) -> str:
    roof = kernel.roofline
    if not roof:
        return ""
    return (
        f"roofline: {roof.intensity:.2g} flop a byte, {roof.gflops:.0f} of {roof.roof_gflops:.0f} GFLOP/s in"
        f" {roof.precision} ({roof.share:.0%} of the {roof.bound} roof)"
    )


def _also(kernel: KernelProfile) -> list[str]:
    """What else is worth a look, whatever limits the kernel."""
    found: list[str] = []
    if kernel.scratch_bytes:
        found.append(f"{kernel.scratch_bytes} bytes of scratch a thread")
    if kernel.local_requests:
        found.append(f"{kernel.local_requests:.0f} local memory instructions a launch")
    if kernel.active_lanes is not None and kernel.active_lanes < 1 - SOME:
        found.append(f"{kernel.active_lanes:.0%} of the lanes work")
    if "uncoalesced" in kernel.symptoms:
        found.append("global accesses are not coalesced")
    return found


def _symptoms(kernel: KernelProfile, bottleneck: Bottleneck) -> list[str]:
    named = {"memory": "gpu_memory", "compute": "gpu_compute", "latency": "gpu_latency", "occupancy": "low_occupancy"}
    found = [named[bottleneck]] if bottleneck in named else []
    if bottleneck == "launch":
        found.append("small_grid" if kernel.waves is not None and kernel.waves < FEW_WAVES else "launch_gaps")
    if kernel.scratch_bytes or kernel.local_requests:
        found.append("spills")
    lanes = kernel.active_lanes is not None and kernel.active_lanes < 1 - SOME
    if lanes or (kernel.uniform_branches is not None and kernel.uniform_branches < 1 - SOME):
        found.append("divergence")
    return found
