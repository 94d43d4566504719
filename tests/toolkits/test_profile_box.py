"""A profiled solution reaches no more than a judged one: its inputs, and a folder of its own."""

import os
import socket
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.toolkits.test_profiling import column_sums, cpp, python
from toolkits.core import profiling, sandbox
from toolkits.core.schema import ProfileReport, Solution

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sandbox.mechanism().bwrap, reason=sandbox.mechanism().why_not or "boxes work"),
]
CPP = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
extern "C" void colsum(const float* x, float scale, float* sums, int64_t rows) {
  BODY
  for (int64_t c = 0; c < 256; ++c) {
    float total = 0.0f;
    for (int64_t r = 0; r < rows; ++r) total += x[r * 256 + c];
    sums[c] = total * scale;
  }
}
"""
ATTEMPT = 'if (FILE* file = fopen("PATH", "MODE")) { fprintf(stderr, "got PATH\\n"); exit(5); }'


@pytest.fixture
def private() -> Generator[Path]:
    """A file of the user's home that everybody on this machine may read and write."""
    with tempfile.NamedTemporaryFile(dir=Path.home(), prefix=".kernel-lab-test-") as file:
        file.write(b"sesame")
        file.flush()
        Path(file.name).chmod(0o666)
        yield Path(file.name)


async def profiled(folder: Path, solution: Solution, limit_s: float = 60.0) -> ProfileReport:
    task = column_sums(folder / "colsum")
    builds, profile = folder / "builds", folder / "profile"
    return await profiling.profile_solution(task, solution, task.workloads[0], builds, profile, limit_s)


def comm_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:  # it has ended meanwhile
        return ""


def attempts(paths: dict[Path, str]) -> str:
    return "\n".join(ATTEMPT.replace("PATH", str(path)).replace("MODE", mode) for path, mode in paths.items())


async def test_a_profiled_kernel_reads_no_home_and_writes_nothing_but_its_folder(tmp_path: Path, private: Path) -> None:
    out_of_reach = {
        private: "r",
        tmp_path / "colsum" / "reference.py": "r",
        Path("/etc/passwd"): "r",
        private.with_name("planted"): "w",
        tmp_path / "planted": "w",
        tmp_path / "profile" / "planted": "w",
        tmp_path / "profile" / "arguments" / "0.bin": "w",
        Path("/usr/planted"): "w",
    }
    report = await profiled(tmp_path, cpp(CPP.replace("BODY", attempts(out_of_reach))))
    assert report.tool == "callgrind" and report.instructions, report.verdict
    assert not any("without a box" in note for note in report.notes)
    (tmp_path / "own").mkdir()
    own = await profiled(tmp_path / "own", cpp(CPP.replace("BODY", attempts({Path("own"): "w"}))))
    assert "got own" in own.verdict and not list(tmp_path.rglob("planted"))


async def test_a_profiled_function_reads_no_home_and_writes_nothing_but_its_folder(
    tmp_path: Path, private: Path
) -> None:
    reads = [str(private), "/etc/passwd", str(tmp_path / "colsum" / "reference.py"), str(Path(__file__))]
    writes = ["/usr/planted", str(tmp_path / "profile" / "planted"), str(private.with_name("planted"))]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        source = f"""
import os, socket, torch

def got(attempt):
    try:
        attempt()
    except OSError:
        return False
    return True

def run(x, scale, sums):
    found = [path for path in {reads!r} if got(lambda: open(path).read())]
    found += [path for path in {writes!r} if got(lambda: open(path, "w"))]
    found += ["network"] * got(lambda: socket.create_connection(("127.0.0.1", {listener.getsockname()[1]}), 2))
    assert not found, found
    assert got(lambda: open("own", "w"))
    sums.copy_(x.sum(0) * scale)
"""
        report = await profiled(tmp_path, python(source))
    assert report.duration_us, report.verdict
    assert not list(tmp_path.rglob("planted"))


async def test_links_and_pipes_that_a_kernel_leaves_as_reports_are_not_followed(tmp_path: Path, private: Path) -> None:
    leave = f'symlink("{private}", "callgrind.out.98"); mkfifo("callgrind.out.99", 0666); symlink("/usr", "out");'
    report = await profiled(tmp_path, cpp(CPP.replace("BODY", leave)))
    assert report.instructions, report.verdict
    left = list((tmp_path / "profile").iterdir())
    assert not any(path.is_symlink() or path.is_fifo() or path.is_dir() for path in left), left
    assert not any(b"sesame" in path.read_bytes() for path in left)


@pytest.mark.parametrize("end", ["for (;;) ;", ""])
async def test_what_a_kernel_leaves_running_is_dead_when_its_profile_is_there(tmp_path: Path, end: str) -> None:
    name = f"left{os.getpid()}"
    escape = f"""
  if (!fork()) {{
    setsid();
    if (fork()) _exit(0);
    prctl(PR_SET_NAME, "{name}");
    for (;;) sleep(600);
  }}
  {end}"""
    report = await profiled(tmp_path, cpp(CPP.replace("BODY", escape)), limit_s=5.0)
    assert ("stopped after 5 s" in report.verdict) == bool(end), report.verdict
    assert name not in {comm_of(path) for path in Path("/proc").glob("[0-9]*/comm")}


async def test_an_answer_that_a_function_forged_is_a_report_that_says_so(tmp_path: Path) -> None:
    source = "import os\nopen('samples.json', 'w').write('{')\nos._exit(0)\ndef run(x, scale, sums):\n    pass\n"
    report = await profiled(tmp_path, python(source))
    assert "no answer that can be read" in report.verdict and report.duration_us is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
async def test_root_profiles_as_another_user_without_any_right(tmp_path: Path) -> None:
    source = """
import os

def run(x, scale, sums):
    assert os.getuid() not in (0, 65534)
    rights = [line for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapBnd"))]
    assert all(int(line.split()[1], 16) == 0 for line in rights), rights
    sums.copy_(x.sum(0) * scale)
"""
    report = await profiled(tmp_path, python(source))
    assert report.duration_us, report.verdict


FORGERIES = {
    "a number without end": "events: Ir\\ntotals: " + "9" * 5000,
    "a name that was never given": "events: Ir\\nfn=(7)\\n+1 2\\ntotals: 999999999999",
    "no instructions": "events: Xx\\n1 5\\ntotals: 999999999999",
}


@pytest.mark.parametrize("what", FORGERIES)
async def test_a_forged_report_of_callgrind_is_no_failure_of_the_lab(tmp_path: Path, what: str) -> None:
    forge = (
        f'FILE* out = fopen("/profile/callgrind.out.9", "w"); fputs("# callgrind format\\n{FORGERIES[what]}\\n", out);'
        ' fclose(out); puts("driver: done"); fflush(stdout); _exit(0);'
    )
    report = await profiled(tmp_path, cpp(CPP.replace("BODY", forge)))
    assert "nothing was counted" in report.verdict and report.instructions is None, report


async def test_forged_samples_are_no_failure_of_the_lab(tmp_path: Path) -> None:
    lines = ", ".join(f'"k.py:{number}": 5' for number in ("abc", "-7", "0", "9" * 5000))
    answer = f'{{"call_us": 1, "calls": 1, "lines": {{{lines}}}, "operators": []}}'
    text = f"import os\ndef run(*_):\n    open('/profile/samples.json', 'w').write({answer!r})\n    os._exit(0)\n"
    report = await profiled(tmp_path, python(text))
    assert [line.line for line in report.hot_lines] == [0, 0, 0, 0], report


async def test_what_a_profiled_solution_leaves_is_taken_in_bounds_and_removed(tmp_path: Path) -> None:
    many = "for i in range(200): os.close(os.open(f'/profile/callgrind.out.{i}', os.O_CREAT))"
    deep = "for _ in range(2000):\n        os.mkdir('d', 0o700)\n        os.chdir('d')"
    giant = "os.truncate(os.open('/profile/samples.json', os.O_CREAT | os.O_WRONLY), 1 << 29)"
    text = f"import os\ndef run(*_):\n    {giant}\n    {many}\n    {deep}\n    os._exit(0)\n"
    report = await profiled(tmp_path, python(text))
    assert "nothing was measured" in report.verdict
    assert not [path for path in (tmp_path / "profile").iterdir() if path.is_dir()]
