"""GPU kernels in the answer of `compile`: a table at a terminal, at most 4 KB over MCP, with and without a task."""

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_server.__main__ import main
from mcp_server.lab import Lab
from mcp_server.server import build_server
from toolkits.core.gpu import toolchain
from toolkits.cuda import TOOLKIT

needs_nvcc = pytest.mark.skipif(bool(TOOLKIT.missing()), reason=f"missing {TOOLKIT.missing()}")
needs_nvrtc = pytest.mark.skipif(not toolchain.nvrtc(), reason=toolchain.REMEDIES["libnvrtc"])

SCALE = """#include "task.h"
__global__ void kernel(const float* x, float a, float* y, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" void run(const float* x, float a, float* y, int64_t n, cudaStream_t stream) {
  kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, a, y, n);
}
"""
YAML = "toolkit: cuda\nentry_point: kernel.cu::run\n"
MANY = "".join(
    f"__global__ void kernel_with_quite_a_long_name_{i}(float* x) {{ x[threadIdx.x * 99] *= {i}; }}\n"
    for i in range(20)
)


def _run(root: Path, *words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(root), *words])
    return int(ended.value.code or 0)


def _solution(root: Path, text: str = SCALE) -> Path:
    folder = root / "candidate"
    folder.mkdir()
    (folder / "kernel.cu").write_text(text, encoding="utf-8")
    (folder / "solution.yaml").write_text(YAML, encoding="utf-8")
    return folder


@needs_nvcc
def test_compile_shows_a_table_of_kernels_for_the_targets_asked_for(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(_solution(root))
    assert _run(root, "compile", "scale", folder, "--target", "sm_80", "--target", "sm_120a") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["kernel", "target", "regs"]
    assert [line.split()[:2] for line in lines[:2]] == [
        ["kernel", "sm_80"],
        ["kernel", "sm_120a"],
    ]
    assert all(len(line) <= 100 for line in [head, *lines[:2]])
    assert any(line.startswith("not timed: ") for line in lines)


@needs_nvcc
def test_an_emulated_kernel_is_judged_and_never_timed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(_solution(root))
    assert _run(root, "benchmark", "scale", folder, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "PASSED" and "emulated on the CPU" in answer["summary"]
    assert {line["status"] for line in answer["workloads"]} == {"SKIPPED"} and not answer.get("speedup")


@needs_nvcc
def test_what_the_emulation_cannot_run_is_skipped_with_its_place(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fence = '  asm volatile("wgmma.fence.sync.aligned;");\n  const int64_t i'
    folder = str(_solution(root, SCALE.replace("  const int64_t i", fence)))
    assert _run(root, "benchmark", "scale", folder, "--json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "SKIPPED" and "kernel.cu:3" in answer["summary"]


@needs_nvrtc
def test_a_file_of_kernels_needs_no_task(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "loose.cu").write_text(MANY, encoding="utf-8")
    assert _run(root, "compile", str(root / "loose.cu"), "--target", "sm_90a") == 0
    out = capsys.readouterr().out
    assert "kernel_with_quite_a_long_name_0" in out and "NVRTC" in out
    assert _run(root, "compile", str(root / "kernels")) != 0
    assert "give .cu files" in capsys.readouterr().err


@needs_nvcc
@pytest.mark.anyio
async def test_over_mcp_the_kernels_fit_4_kb_in_both_halves(root: Path, lab: Lab) -> None:
    (root / "loose.cu").write_text(f"#include <cstdio>\n{MANY}", encoding="utf-8")
    async with Client(build_server(lab)) as client:
        arguments = {"path": str(root / "loose.cu"), "targets": ["sm_90a", "sm_100a"]}
        result = await client.call_tool("compile", arguments)
    assert isinstance(result, CallToolResult) and result.structured_content
    text = "".join(part.text for part in result.content if isinstance(part, TextContent))
    assert len(json.dumps(result.structured_content)) <= 4096 and len(text.encode()) <= 4096
    first = result.structured_content["kernels"][0]
    assert first["target"] == "sm_90a" and first["registers"] > 4 and result.structured_content["more_kernels"] > 30
    assert "uncoalesced" in text and "396 bytes apart" in text
