"""Steps of the check that need no toolkit's solution: the driver layer by itself, and the corpus of cheats."""

import json
import sys
from pathlib import Path

from bench.gpu_check import standing
from bench.gpu_check.report import Section
from tests.cheats_gpu.corpus import Corpus, find_cases
from toolkits.core import process
from toolkits.core.gpu import toolchain
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.judge.client import Judge

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0
NOTHING_US = 20.0
"""An empty kernel must seem no longer than this: else the flush or a copy is in the figure."""
LEAK_BYTES = 4 << 20


async def self_test(gpu: Gpu, work: Path, section: Section) -> None:
    """Every function of the driver layer, in a child."""
    module = await _module(gpu, work)
    if not module:
        section.outcome, section.why = "skipped", "no compiler here makes a module for this device"
        return
    command = [sys.executable, "-m", "bench.gpu_check.self_test", gpu.name, str(module)]
    done = await process.run(command, cwd=ROOT, timeout_s=LIMIT_S)
    line = done.output.strip().rpartition("\n")[2]
    if done.returncode != 0 or not line.startswith("{"):
        section.outcome, section.why = "failed", done.output[-600:]
        return
    said = json.loads(line)
    section.columns = ("figure", "value")
    section.rows = [[name, str(value)] for name, value in said["facts"].items()]
    section.rows += [[f"an empty kernel, {how}, us", f"{us:.2f}"] for how, us in said["nothing_us"].items()]
    section.rows += [["copies, GB/s", f"{said['copy_gb_s']:.1f}"], ["too much memory is", said["refused"]]]
    problems = {
        "bytes come back changed": not said["moved"],
        "an endless allocation was not refused": "OUT_OF_MEMORY" not in said["refused"].upper(),
        "memory leaks": said["leaked_bytes"] > LEAK_BYTES,
        "an empty kernel takes too long": not gpu.stand_in and max(said["nothing_us"].values()) > NOTHING_US,
    }
    if bad := [problem for problem, is_so in problems.items() if is_so]:
        section.outcome, section.why = "failed", "; ".join(bad)


async def _module(gpu: Gpu, work: Path) -> Path | None:
    """The kernel that does nothing, for this device."""
    source, module = standing.STAND_IN / "nothing.cu", work / "nothing.module"
    if gpu.stand_in:
        return await standing.built_module(module)
    if not gpu.name.startswith("cuda") or not toolchain.program("nvcc"):
        return None
    command = [toolchain.program("nvcc"), "-cubin", f"-arch={gpu.architecture}", str(source), "-o", str(module)]
    done = await process.run(command, cwd=work, timeout_s=LIMIT_S)
    return module if done.returncode == 0 else None


async def corpus(judge: Judge, builds: Path, driver: Path | None, gpu: Gpu, section: Section) -> None:
    """Every cheat must be refused, every honest twin must pass."""
    if not gpu.name.startswith("cuda"):
        section.outcome, section.why = "skipped", "the GPU half of the corpus is CUDA's"
        return
    judged = Corpus(judge, builds, driver)
    section.columns = ("case", "got", "seconds")
    bad: list[str] = []
    for case in find_cases():
        outcome = await judged.judged(case)
        section.rows.append([case.name, outcome.got, f"{outcome.seconds:.1f}"])
        if not outcome.ok:
            bad.append(f"{case.name}: {outcome.got}, expected {' or '.join(case.expected)}: {outcome.detail[:200]}")
    cheats = len([row for row in section.rows if row[0].endswith("cheat")])
    section.notes.append(f"{cheats} cheats, {len(section.rows) - cheats} honest twins, {len(bad)} not as expected")
    if bad:
        section.outcome, section.why = "failed", "; ".join(bad)
