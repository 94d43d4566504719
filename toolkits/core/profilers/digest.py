"""A report of any profiler, told by its content and not by its name, as one ProfileReport. Starts no process."""

import csv
import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers import (
    callgrind,
    kernels,
    ncu,
    ncu_csv,
    ncu_rep,
    perf,
    rocpd,
    rocprof,
    rocprof_csv,
    rocprof_json,
    tables,
)
from toolkits.core.profilers.ncu_metrics import Launch
from toolkits.core.profilers.roofline import ARCHITECTURES, amd_model
from toolkits.core.profilers.verdict import verdict
from toolkits.core.schema import ProfileReport

LIMIT_BYTES = 1_000_000_000
GZIP = b"\x1f\x8b"
KINDS = (
    "ncu (.ncu-rep, `ncu --csv` with the details or raw page), rocprofv3 (CSV, JSON, rocpd .db), rocprof-compute"
    " (pmc_perf.csv), `perf stat -x,`, callgrind.out, and the lab's own report.json"
)
OF_NSYS = (
    "a report of Nsight Systems holds a time line and no counters: profile the kernel with ncu, and give that report"
)
BESIDE = ("sysinfo.csv", "*agent_info.csv")
"""Files that AMD's profilers write next to a table, and that name the device."""


def content_of(path: Path) -> bytes:
    """The bytes of a report, unpacked where it is a .gz."""
    try:
        if path.is_dir():
            raise InvalidInput(f"{path} is a folder: give the report in it")
        if path.stat().st_size > LIMIT_BYTES:
            raise InvalidInput(f"{path} is above 1 GB: record fewer kernels")
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}): it has to be there") from None
    if not content.strip():
        raise InvalidInput(f"{path} is empty: the profiler wrote nothing. Look at what it said when it ran")
    if not content.startswith(GZIP):
        return content
    try:
        with gzip.open(path) as packed:
            content = packed.read(LIMIT_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{path} is cut or damaged ({error}): copy it again") from None
    if not content.strip():
        raise InvalidInput(f"{path} holds an empty file: the profiler wrote nothing")
    return content


def is_ncu_rep(content: bytes) -> bool:
    return content.startswith(ncu_rep.MAGIC[:3])


def of_content(path: Path, content: bytes) -> ProfileReport:
    """The report in a file; `path` for its name, and for what lies beside it."""
    try:
        return _of_content(path, content).model_copy(update={"raw_report": str(path)})
    except InvalidInput as error:
        raise InvalidInput(f"{path.name}: {error}") from None


def _of_content(path: Path, content: bytes) -> ProfileReport:
    if content.startswith(rocpd.MAGIC):
        return of_recording(rocpd.parse(path), path)
    text = tables.text_of(content)
    start = text.lstrip()[:1]
    if text.startswith("# callgrind format"):
        return _callgrind(path, text)
    if start in {"{", "["}:
        return _json(path, text)
    readers: tuple[Callable[[Path, str], ProfileReport | None], ...] = (_ncu, _rocprof, _stats, _samples, _perf)
    for reader in readers:
        if report := reader(path, text):
            return report
    ncu_csv.refuse(text)
    raise InvalidInput(_unknown(text))


def of_launches(launches: list[Launch], path: Path, notes: list[str]) -> ProfileReport:
    """Nsight Compute's launches as a report."""
    device = next((launch.device for launch in launches if launch.device), "")
    architecture = next((launch.architecture for launch in launches if launch.architecture), "")
    about = ProfileReport(tool="ncu", target=path.name, device=device, architecture=architecture, notes=notes)
    return kernels.report(kernels.merged(map(ncu.profile, launches)), about)


def of_recording(recording: rocprof_json.Recording, path: Path) -> ProfileReport:
    """rocprofv3's dispatches as a report."""
    about = ProfileReport(
        tool="rocprofv3",
        target=path.name,
        command=recording.command,
        device=recording.device,
        architecture=recording.architecture,
    )
    return rocprof.digest(recording.dispatches, about)


def _ncu(path: Path, text: str) -> ProfileReport | None:
    found = ncu_csv.find(text)
    return of_launches(ncu_csv.launches(found), path, ncu_csv.notes(found)) if found else None


def _rocprof(path: Path, text: str) -> ProfileReport | None:
    found = rocprof_csv.find(text)
    if not found:
        return None
    compute = found.has("LDS_Per_Workgroup") and found.has("Dispatch_ID")
    device, architecture, notes = _beside(path)
    about = ProfileReport(
        tool="rocprof-compute" if compute else "rocprofv3",
        target=path.name,
        device=device,
        architecture=architecture,
        notes=notes,
    )
    return rocprof.digest(rocprof_csv.dispatches(found), about)


def _stats(path: Path, text: str) -> ProfileReport | None:
    found = rocprof_csv.find_stats(text)
    if not found:
        return None
    notes = ["the statistics hold times only: kernel_trace.csv knows the launch shapes, registers and gaps, too"]
    return kernels.report(rocprof_csv.stats(found), ProfileReport(tool="rocprofv3", target=path.name, notes=notes))


def _samples(path: Path, text: str) -> ProfileReport | None:
    found = rocprof_csv.find_samples(text)
    if not found:
        return None
    lines = rocprof_csv.hot_lines(found)
    lanes = rocprof_csv.sampled_lanes(found)
    where = f"{lines[0].file}:{lines[0].line}" if lines[0].line else lines[0].source
    return ProfileReport(
        tool="rocprofv3",
        target=path.name,
        hot_lines=lines,
        verdict=f"{lines[0].share:.0%} of {len(found.rows)} samples at {where}; samples tell where, not why",
        notes=[f"{lanes:.0%} of the lanes were on in the mean sample"] if lanes is not None else [],
    )


def _perf(path: Path, text: str) -> ProfileReport | None:
    found = perf.parse(text)
    if not set(found) & {*perf.EVENTS}:
        return None
    counts = perf.counts(found)
    bottleneck, line = verdict(counts)
    report = ProfileReport(tool="perf", target=path.name, bottleneck=bottleneck, verdict=line)
    return report.model_copy(update={"duration_us": perf.duration_us(found), **counts.measured()})


def _callgrind(path: Path, text: str) -> ProfileReport:
    profile = callgrind.parse(text)
    counts = callgrind.counts(profile)
    bottleneck, line = verdict(counts)
    report = ProfileReport(
        tool="callgrind",
        target=profile.command or path.name,
        hot_lines=callgrind.hot_lines(profile, {}),
        bottleneck=bottleneck,
        verdict=line,
    )
    return report.model_copy(update=counts.measured())


def _json(path: Path, text: str) -> ProfileReport:
    if f'"{rocprof_json.ROOT}"' in text[:1000]:
        return of_recording(rocprof_json.parse(text), path)
    if '"tool"' in text[:200]:
        try:
            return ProfileReport.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise InvalidInput(f"no report of this version of the lab: {where}: {first['msg']}") from None
    raise InvalidInput(f"JSON of no kind that is read here, which are {KINDS}")


def _beside(path: Path) -> tuple[str, str, list[str]]:
    """Device and architecture of an AMD table: from the file that its profiler left beside it, else from its path."""
    for pattern in BESIDE:
        for file in sorted(path.parent.glob(pattern)):
            device, architecture = _device(file.read_text(encoding="utf-8", errors="replace"))
            if architecture:
                return device, architecture, [f"device: {device or architecture}, by {file.name} beside the table"]
    # rocprof-compute names the folder of a recording after the model.
    if model := amd_model(f"{path.parent.name}/{path.name}"):
        return model, ARCHITECTURES[model], [f"taken for {ARCHITECTURES[model]}, as its path names {model}"]
    return "", "", []


def _device(text: str) -> tuple[str, str]:
    """Of sysinfo.csv (gpu_model, gpu_arch) or agent_info.csv (Product_Name, Name of the first GPU)."""
    for row in csv.DictReader(io.StringIO(text)):
        held = {(name or "").lower(): value or "" for name, value in row.items() if isinstance(value, str)}
        architecture = held.get("gpu_arch") or held.get("name", "")
        if architecture.startswith("gfx"):
            return held.get("gpu_model") or held.get("product_name", ""), architecture.partition(":")[0]
    return "", ""


def _unknown(text: str) -> str:
    if "nsys" in text[:200].lower():
        return OF_NSYS
    return f"of no kind that is read here, or with renamed columns. Known are {KINDS}"
