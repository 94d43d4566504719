"""`devices` on machines with GPUs: the real packages ask libraries that stand in for the drivers."""

import asyncio
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from mcp_server.__main__ import main
from toolkits.core import device, gpus

STAND_INS = Path(__file__).parents[1] / "toolkits" / "gpu" / "stand_ins"
needs_pynvml = pytest.mark.skipif(not find_spec("pynvml"), reason="pip install nvidia-ml-py")
needs_amdsmi = pytest.mark.skipif(not find_spec("amdsmi"), reason="pip install amdsmi==7.0.2")


def _library(folder: Path, name: str, *words: str) -> None:
    command = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", *words, "-o", str(folder / name)]
    subprocess.run(command, check=True, capture_output=True)


def _nvml(folder: Path, *flags: str) -> None:
    _library(folder, "libnvidia-ml.so.1", *flags, str(STAND_INS / "nvml.c"))


def _amd_smi(folder: Path) -> None:
    """With every function that the package binds when it is imported."""
    spec = find_spec("amdsmi")
    assert spec and spec.origin
    wrapper = Path(spec.origin).with_name("amdsmi_wrapper.py").read_text(encoding="utf-8")
    bound = set(re.findall(r"_libraries\['libamd_smi.so'\]\.(\w+)", wrapper))
    here = set(re.findall(r"^int (\w+)\(", (STAND_INS / "amd_smi.c").read_text(encoding="utf-8"), re.MULTILINE))
    rest = folder / "rest.c"
    rest.write_text("".join(f"int {name}(void) {{ return 2; }}\n" for name in sorted(bound - here)), encoding="utf-8")
    _library(folder, "libamd_smi.so", str(STAND_INS / "amd_smi.c"), str(rest))


def _shown(root: Path, capture: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(root), "devices"])
    assert not ended.value.code
    return capture.readouterr().out.splitlines()


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which loaders look."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.setenv("ROCM_PATH", str(folder))
    return folder


@needs_pynvml
def test_devices_shows_clocks_throttling_memory_and_users_of_nvidia_gpus_and_what_to_do_about_a_lost_one(
    root: Path, libraries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _nvml(libraries)
    lines = _shown(root, capsys)
    text = "\n".join(lines)
    assert "cuda:0 (cuda): NVIDIA H200, sm_90, 150.75 GB" in lines
    assert "clock 1230 of 1980 MHz, memory clock 3201 of 3201 MHz, 12 GB used, 87 C, 698 W" in text
    assert "throttled: power cap, thermal, by hardware" in " ".join(text.split())
    assert f"in use by 1 {Path('/proc/1/comm').read_text(encoding='utf-8').strip()} 11.5 GB" in text
    assert "cuda:1 (cuda): NVIDIA GPU" in lines
    assert "GPU is lost" in text and "reboot" in text
    assert max(map(len, lines)) <= 100


@needs_amdsmi
def test_devices_shows_an_amd_gpu_at_its_power_cap_and_that_its_users_may_not_be_seen(
    root: Path, libraries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _amd_smi(libraries)
    lines = _shown(root, capsys)
    text = " ".join("\n".join(lines).split())
    assert "hip:0 (hip): AMD Instinct MI300X, gfx942, 304 compute units, 206.14 GB" in lines
    assert "clock 1400 of 2100 MHz, memory clock 1300 of 1300 MHz, 1.07 GB used, 61 C, 745 of 750 W" in text
    assert "throttled: power cap" in text
    assert "AMDSMI_STATUS_NO_PERM" in text and "groups render and video" in text
    assert max(map(len, lines)) <= 100


@needs_pynvml
@pytest.mark.parametrize(
    ("flag", "said"),
    [("-DREFUSES=18", "reboot, or reload the kernel module"), ("-DREFUSES=9", "modprobe nvidia"), ("-DDIES", "-6")],
)
def test_a_driver_that_refuses_or_kills_whoever_asks_is_one_line_with_a_remedy(
    libraries: Path, flag: str, said: str
) -> None:
    _nvml(libraries, flag)
    (found,) = asyncio.run(gpus.listed())
    assert said in found.problem and not found.gpu


def test_without_a_driver_no_driver_package_is_imported_and_no_gpu_is_listed() -> None:
    code = "import sys; from toolkits.core.gpu import listing_child as c; c.main(); print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert "kernel-lab devices: []" in done.stdout
    assert not {"pynvml", "amdsmi", "pydantic"} & set(done.stdout.split())


@needs_pynvml
@pytest.mark.anyio
async def test_a_gpu_is_leased_by_its_uuid_whatever_a_process_calls_it_and_shown_as_busy_meanwhile(
    libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _nvml(libraries)
    gpu = (await device.all_devices())[1]
    assert device.lock_name(gpu) == "GPU-stand-in-0" and not gpu.busy
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    async with device.lease("cuda:1"):
        assert (await device.all_devices())[1].busy
    assert not (await device.all_devices())[1].busy
    assert [await gpus.lock_of(name) for name in ("cpu", "cuda:0")] == ["cpu", "cuda:0"]  # the lost one has no uuid
