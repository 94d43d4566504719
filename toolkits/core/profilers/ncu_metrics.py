"""Nsight Compute's names for its figures, and the values of one launch under them. Knows no file, and no other vendor.

The same figure has a metric name (raw page, .ncu-rep) and a label (details page), and labels changed between versions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

ELAPSED, ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
DURATION = ("gpu__time_duration.sum", "gpu__time_duration.avg", "Duration")
SHARES: dict[str, tuple[str, ...]] = {
    "memory_share": (
        f"gpu__compute_memory_throughput{ELAPSED}",
        "Memory Throughput",
        "Memory [%]",
        "SOL Memory",
        "Mem [%]",
    ),
    "compute_share": (
        f"sm__throughput{ELAPSED}",
        "Compute (SM) Throughput",
        "Compute (SM) [%]",
        "SM [%]",
        "SOL SM",
    ),
    "dram_share": (
        f"gpu__dram_throughput{ELAPSED}",
        f"dram__throughput{ELAPSED}",
        "DRAM Throughput",
        "SOL DRAM",
    ),
    "l2_share": (f"lts__throughput{ELAPSED}", "L2 Cache Throughput", "SOL L2 Cache"),
    "l1_share": (
        f"l1tex__throughput{ACTIVE}",
        f"l1tex__throughput{ELAPSED}",
        "L1/TEX Cache Throughput",
        "SOL L1/TEX Cache",
    ),
    "l1_hit_share": ("l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate", "L1 Hit Rate"),
    "l2_hit_share": ("lts__t_sector_hit_rate.pct", "L2 Hit Rate"),
    "issue_share": (
        f"smsp__issue_active{ACTIVE}",
        "One or More Eligible",
        f"sm__inst_issued{ACTIVE}",
        "Issue Slots Busy",
    ),
    "occupancy": (f"sm__warps_active{ACTIVE}", "Achieved Occupancy"),
    "occupancy_possible": ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy"),
    "uniform_branches": ("smsp__sass_average_branch_targets_threads_uniform.pct", "Branch Efficiency"),
}
REGISTERS = ("launch__registers_per_thread", "Registers Per Thread")
WAVES = ("launch__waves_per_multiprocessor", "Waves Per SM")
LANES = ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", "Avg. Not Predicated Off Threads Per Warp")
SHARED = (
    ("launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    ("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
)
DRAM_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
DRAM_RATE = ("dram__bytes.sum.per_second", "Memory Throughput")
LOCAL = (
    (
        "sass__inst_executed_local_loads",
        "smsp__sass_inst_executed_op_local_ld.sum",
        "smsp__inst_executed_op_local_ld.sum",
    ),
    (
        "sass__inst_executed_local_stores",
        "smsp__sass_inst_executed_op_local_st.sum",
        "smsp__inst_executed_op_local_st.sum",
    ),
)
LIMITS = {
    "registers": ("launch__occupancy_limit_registers", "Block Limit Registers"),
    "shared memory": ("launch__occupancy_limit_shared_mem", "Block Limit Shared Mem"),
    "block size": ("launch__occupancy_limit_warps", "Block Limit Warps"),
    "blocks an SM holds": ("launch__occupancy_limit_blocks", "Block Limit SM"),
    "barriers": ("launch__occupancy_limit_barriers", "Block Limit Barriers"),
}
STALL_NAMES = {
    "long_scoreboard": "a global or local memory access (long scoreboard)",
    "short_scoreboard": "shared memory or a special function (short scoreboard)",
    "lg_throttle": "a free slot for local and global accesses (LG throttle)",
    "mio_throttle": "a free slot in the shared memory queue (MIO throttle)",
    "math_pipe_throttle": "a busy compute pipe (math pipe throttle)",
    "barrier": "the other warps at a barrier",
    "imc_miss": "a constant that missed its cache (IMC miss)",
    "no_instruction": "instructions (instruction cache)",
    "no_instructions": "instructions (instruction cache)",
    "wait": "a fixed latency (wait)",
    "not_selected": "its turn: another warp was chosen",
    "membar": "a memory fence",
    "drain": "stores to drain at the end",
    "gmma": "a tensor core group operation (GMMA)",
}
_MARKUP = re.compile(r"@(?:section|url|[a-z]+):([^:@]*):[^@]*@")
_SECTION = re.compile(r"@section:[^:@]*:([^@]*)@")


@dataclass(frozen=True)
class Rule:
    """What Nsight Compute itself says about a launch."""

    name: str
    text: str
    optimisation: bool
    speedup: float | None = None
    """Estimated, in per cent."""
    local: bool = False
    """The estimate is of one unit, not of the kernel."""


@dataclass(frozen=True)
class Launch:
    """One launch as any page of a report gives it; values in base units (seconds, bytes, shares)."""

    name: str
    metrics: Mapping[str, tuple[float, str]]
    """Metric name or label -> value and unit; a label with two meanings is `label|unit`."""
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    rules: Sequence[Rule] = field(default_factory=tuple)
    device: str = ""
    architecture: str = ""
    launches: int = 1

    def value(self, names: Sequence[str], unit: str = "") -> float | None:
        """The first metric of these names that was measured, and has the unit where one is asked for."""
        for name in names:
            found = self.metrics.get(f"{name}|{unit}") if unit else None
            found = found or self.metrics.get(name)
            if found and (not unit or found[1] == unit):
                return found[0]
        return None


def plain(text: str) -> str:
    """A rule's text without the markup of links."""
    return _MARKUP.sub(r"\1", _SECTION.sub(r"\1", text)).strip()
