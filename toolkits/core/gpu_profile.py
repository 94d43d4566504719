"""Runs Nsight Compute or rocprofv3 on a command, and reads their reports. Decides no verdict; formats are elsewhere."""

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio.to_thread

from toolkits.core import process
from toolkits.core.errors import InvalidInput
from toolkits.core.process import Completed
from toolkits.core.profile_box import Room
from toolkits.core.profilers import digest, ncu_csv, ncu_rep, rocprof_json
from toolkits.core.schema import ProfileReport

NCU, ROCPROF = "ncu", "rocprofv3"
LAUNCHES = 64
"""Nsight Compute repeats each launch dozens of times: the first ones have to do."""
READ_LIMIT_S = 120.0
KEEP_BYTES = 50_000_000
NO_KERNELS = {
    NCU: ncu_csv.NO_KERNELS,
    ROCPROF: "no kernel was traced: see that the program launches kernels, and in the process that rocprofv3 starts",
}
STOPPED = (
    "{} was stopped after {:.0f} s, with every process it had started: profile a smaller workload. It runs kernels one"
    " after the other, so kernels that wait for each other (collectives, several streams) never end under it"
)


def profiler() -> str:
    """The GPU profiler on PATH, empty where there is none."""
    return next((name for name in (NCU, ROCPROF) if shutil.which(name)), "")


def ncu_command(command: Sequence[str], report: Path) -> list[str]:
    """Record the full set of figures of the first launches, in every process of the command."""
    options = ["--set", "full", "--target-processes", "all", "--launch-count", str(LAUNCHES)]
    return [NCU, *options, "--force-overwrite", "--export", str(report), "--", *command]


def ncu_import_command(report: Path) -> list[str]:
    """Print a recorded report as the raw page, in base units and without locale."""
    return [NCU, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base"]


def rocprof_command(command: Sequence[str], folder: Path) -> list[str]:
    """Trace all kernels; the JSON alone names the device, the registers and the launch shapes in every version."""
    options = ["--kernel-trace", "--output-format", "json", "--output-directory", str(folder), "--output-file", "trace"]
    return [ROCPROF, *options, "--", *command]


async def profile(
    command: Sequence[str],
    cwd: Path,
    folder: Path,
    environment: Mapping[str, str],
    limit_s: float,
    room: Room | None = None,
) -> ProfileReport | None:
    """The GPU's part of a command; None where no GPU profiler is here. A solution's runs in a room."""
    if not (tool := profiler()):
        return None
    folder = folder.resolve()
    there = room.inside if room else folder
    wanted = rocprof_command(command, there) if tool == ROCPROF else ncu_command(command, there / "report.ncu-rep")
    if room:
        done = await room.run([str(shutil.which(tool)), *wanted[1:]], environment, limit_s)
        room.collect(folder, "**/*.ncu-rep" if tool == NCU else "**/*results.json")
    else:
        done = await process.run(wanted, cwd=cwd, timeout_s=limit_s, env=environment)
    (folder / f"{tool}.log").write_text(done.output, encoding="utf-8")
    about = ProfileReport(tool=tool, target=" ".join(command), command=list(wanted), raw_report=str(folder))
    if trouble := _trouble(tool, done, limit_s):
        return about.model_copy(update={"verdict": trouble})
    found = sorted(folder.rglob("*.ncu-rep" if tool == NCU else "*results.json"))
    if not found:
        return about.model_copy(update={"verdict": _nothing(tool, done)})
    try:
        report = await (_imported(found[-1], environment) if tool == NCU else read(found[-1], folder))
    except InvalidInput as error:
        if rocprof_json.EMPTY not in str(error):
            raise
        return about.model_copy(update={"verdict": NO_KERNELS[tool]})
    return report.model_copy(update={"target": about.target, "command": about.command, "raw_report": str(found[-1])})


async def read(path: Path, folder: Path) -> ProfileReport:
    """The report in a file of any profiler; `folder` takes what reading leaves."""
    content = await anyio.to_thread.run_sync(digest.content_of, path)
    if not digest.is_ncu_rep(content):
        return await anyio.to_thread.run_sync(digest.of_content, path, content)
    try:
        return await _read_ncu_rep(path, folder)
    except InvalidInput as error:
        raise InvalidInput(f"{path.name}: {error}") from None


async def _read_ncu_rep(path: Path, folder: Path) -> ProfileReport:
    if not ncu_rep.installed():
        raise InvalidInput(ncu_rep.MISSING)
    answer = folder.resolve() / "launches.json"
    answer.unlink(missing_ok=True)
    child = [sys.executable, "-P", "-m", ncu_rep.__name__, str(path.resolve()), str(answer)]
    done = await process.run(child, cwd=folder, timeout_s=READ_LIMIT_S)
    if done.returncode != 0 or not answer.exists():
        last = done.output.strip().splitlines()[-1:] or ["no word"]
        raise InvalidInput(f"NVIDIA's ncu-report ended at it ({last[0][:200]}): it is damaged, copy or record it again")
    held = json.loads(answer.read_text(encoding="utf-8"))
    answer.unlink()
    report = digest.of_launches(ncu_rep.launches(held), path, [])
    return report.model_copy(update={"raw_report": str(path)})


async def _imported(path: Path, environment: Mapping[str, str]) -> ProfileReport:
    """The machine that records can print as well: no package is needed there."""
    done = await process.run(
        ncu_import_command(path), cwd=path.parent, timeout_s=READ_LIMIT_S, env=environment, keep=KEEP_BYTES
    )
    raw = path.with_suffix(".raw.csv")
    raw.write_text(done.output, encoding="utf-8")
    if done.returncode != 0:
        raise InvalidInput(f"ncu could not print its own report {path}: {done.output.strip()[-300:]}")
    report = digest.of_content(raw, raw.read_bytes())
    if report.launches == LAUNCHES:
        first = f"only the first {LAUNCHES} launches were recorded: what came later is not in the report"
        return report.model_copy(update={"notes": [first, *report.notes]})
    return report


def _trouble(tool: str, done: Completed, limit_s: float) -> str:
    if done.returncode is None:
        return STOPPED.format(tool, limit_s)
    return ncu_csv.NO_PERMISSION if "ERR_NVGPUCTRPERM" in done.output else ""


def saw_nothing(report: ProfileReport) -> bool:
    """The command launched no kernel: it may be one for the CPU."""
    return report.verdict in NO_KERNELS.values()


def _nothing(tool: str, done: Completed) -> str:
    # rocprofv3 ends well and writes nothing.
    if "No kernels were profiled" in done.output or (tool == ROCPROF and done.returncode == 0):
        return NO_KERNELS[tool]
    words = [line for line in done.output.splitlines() if line.strip()]
    said = f": {words[-1][:200]}" if words else ""
    return f"{tool} ended with exit status {done.returncode} and left no report{said}"
