"""Checks all that touches a GPU in at most eight minutes, and writes one report; without a GPU it is a dry run.

    python -m bench.gpu_check [FOLDER]

The dry run walks the same way on a stand-in for a driver, and says so. Ends with 1 if any step failed.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path

import anyio
from rich.console import Console

from bench.gpu_check import standing
from bench.gpu_check.report import Section, written
from bench.gpu_check.steps import corpus, self_test
from bench.gpu_check.subjects import Subjects
from toolkits.core.errors import LabError
from toolkits.core.gpu import device_access
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.judge.client import Judge

LIMIT_S = 480.0
TOOLKITS = {"cuda": ("cuda", "triton", "opencl"), "hip": ("hip", "triton", "opencl")}
DRY_TOOLKITS = ("cuda", "hip", "triton", "opencl")


class Check:
    """The steps, within their time."""

    def __init__(self, console: Console, deadline: float) -> None:
        self._console, self._deadline = console, deadline
        self.sections: list[Section] = []

    async def step(self, title: str, work: Callable[[Section], Awaitable[None]]) -> None:
        """One step: what it raises is its outcome, and none starts or goes on after the limit."""
        section, started = Section(title), time.monotonic()
        self.sections.append(section)
        try:
            with anyio.fail_after(max(self._deadline - started, 0.0)):
                await work(section)
        except TimeoutError:
            section.outcome, section.why = "failed", f"the {LIMIT_S:.0f} s of the whole check were over"
        except LabError as error:
            section.outcome, section.why = "failed", str(error)
        section.seconds = time.monotonic() - started
        self._console.print(f"{title:24} {section.outcome:8} {section.seconds:5.1f} s  {section.why}")


async def check(folder: Path, console: Console) -> bool:
    """Whether nothing failed."""
    gpu = await device_access.first("cuda") or await device_access.first("hip")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        driver = None if gpu else await standing.built_driver(work)
        with standing.in_use(driver) if driver else nullcontext():
            gpu = gpu or await device_access.first("cuda")
            assert gpu
            sections = await _all(gpu, driver, work, console)
    dry = gpu.stand_in
    report = written(sections, folder, device=f"{gpu.name}, {gpu.model}, {gpu.architecture}", dry=dry)
    console.print(f"{report}{': a dry run, no figure in it is of a GPU' if dry else ''}")
    return all(section.outcome != "failed" for section in sections)


async def _all(gpu: Gpu, driver: Path | None, work: Path, console: Console) -> list[Section]:
    judge, steps = Judge(), Check(console, time.monotonic() + LIMIT_S)
    builds = work / "builds"
    builds.mkdir()
    work.chmod(0o755)  # a worker may be another user
    subjects = Subjects(judge, builds, gpu)
    try:
        await steps.step("driver layer", lambda section: self_test(gpu, work, section))
        for toolkit in DRY_TOOLKITS if gpu.stand_in else TOOLKITS[gpu.name.partition(":")[0]]:
            await steps.step(toolkit, lambda section, toolkit=toolkit: _one(subjects, toolkit, work, section))
        await steps.step("other timers", subjects.timers)
        await steps.step("cheats", lambda section: corpus(judge, builds, driver, gpu, section))
    finally:
        await judge.close()
    return steps.sections


async def _one(subjects: Subjects, toolkit: str, work: Path, section: Section) -> None:
    await subjects.build(toolkit, section)
    await subjects.judge(toolkit, section)
    if toolkit in ("cuda", "hip") and toolkit in subjects.built:
        await subjects.profile(toolkit, section, work / f"profile-{toolkit}")
    await subjects.sanitize(toolkit, section)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("gpu-check"), help="where the report goes")
    given = parser.parse_args()
    width = max(shutil.get_terminal_size().columns, 100)
    return 0 if anyio.run(check, given.folder, Console(width=width, highlight=False)) else 1


if __name__ == "__main__":
    sys.exit(main())
