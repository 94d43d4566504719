"""Where a kernel lies under the roof of its device. Pure; peaks come from the report, or from a table for AMD."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolkits.core.schema import Roofline


@dataclass(frozen=True)
class Peaks:
    """What a device can do at most, by its data sheet or by the profiler's own figures."""

    gb_s: float
    gflops: Mapping[str, float]
    """By precision; 1e9 operations a second."""


AMD = {
    "MI250X": Peaks(1638.0, {"fp16": 95_700, "fp32": 23_900, "fp64": 23_900, "mfma16": 191_500, "mfma32": 47_900}),
    "MI300A": Peaks(5300.0, {"fp16": 122_600, "fp32": 122_600, "fp64": 61_300, "mfma16": 980_600, "mfma32": 122_600}),
    "MI300X": Peaks(5300.0, {"fp16": 163_400, "fp32": 163_400, "fp64": 81_700, "mfma16": 1_307_400, "mfma32": 163_400}),
    "MI325X": Peaks(6000.0, {"fp16": 163_400, "fp32": 163_400, "fp64": 81_700, "mfma16": 1_307_400, "mfma32": 163_400}),
    "MI350X": Peaks(8000.0, {"fp16": 144_200, "fp32": 144_200, "fp64": 72_100, "mfma16": 2_306_900, "mfma32": 144_200}),
    "MI355X": Peaks(8000.0, {"fp16": 157_300, "fp32": 157_300, "fp64": 78_600, "mfma16": 2_516_600, "mfma32": 157_300}),
}
"""Vendor's data sheets, dense; MI250X is one of its two dies, which is what a program sees as a device."""
NVIDIA = {
    "sm_80": ("A100 SXM 80 GB", Peaks(2039.0, {"fp32": 19_500, "tensor16": 312_000})),
    "sm_90": ("H100 SXM", Peaks(3350.0, {"fp32": 66_900, "tensor16": 989_400})),
    "sm_100": ("B200", Peaks(8000.0, {"fp32": 75_000, "tensor16": 2_250_000})),
}
"""A well-known device of an architecture and its data sheet, dense: for estimates of what was not run."""
ARCHITECTURES = {
    "MI210": "gfx90a",
    "MI250X": "gfx90a",
    "MI250": "gfx90a",
    "MI300A": "gfx942",
    "MI300X": "gfx942",
    "MI325X": "gfx942",
    "MI350X": "gfx950",
    "MI355X": "gfx950",
}


def amd_peaks(device: str) -> Peaks | None:
    """Peaks of a device by its name, such as `AMD Instinct MI300X`."""
    return next((peaks for model, peaks in AMD.items() if model in device.upper()), None)


def typical(target: str) -> tuple[str, Peaks] | None:
    """The device that stands for a target such as sm_90a or gfx942, and its peaks; None: the tables have none."""
    model = next((model for model in ("MI300X", "MI355X", "MI250X") if ARCHITECTURES[model] == target), "")
    return (model, AMD[model]) if model else NVIDIA.get(target.rstrip("af"))


def amd_model(text: str) -> str:
    """The model that a name or path names; empty when it names none."""
    return next((model for model in ARCHITECTURES if model in text.upper()), "")


def position(
    flops: float | None, dram_bytes: float | None, duration_us: float | None, peaks: Peaks | None, precision: str
) -> Roofline | None:
    """None unless operations, bytes, time and the roof itself are all known."""
    if not flops or not dram_bytes or not duration_us or not peaks or not peaks.gflops.get(precision):
        return None
    intensity = flops / dram_bytes
    slope, flat = intensity * peaks.gb_s, peaks.gflops[precision]
    roof, reached = min(slope, flat), flops / duration_us / 1e3
    return Roofline(
        intensity=intensity,
        gflops=reached,
        roof_gflops=roof,
        share=reached / roof,
        bound="memory" if slope < flat else "compute",
        precision=precision,
    )
