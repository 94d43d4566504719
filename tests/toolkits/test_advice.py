"""Advice names what in sources or errors is worth a look, whatever hides it, and says nothing of honest ones."""

from pathlib import Path

import pytest

from mcp_server.workspace import Workspace
from toolkits.core.advice import MAX_LINES, advice
from toolkits.core.schema import CheckError, Solution

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((path.parents[2].name, path.parent.name) for path in ROOT.glob("kernels/*/solutions/*/solution.yaml"))


def _python(text: str) -> list[str]:
    return advice(Solution(task="t", toolkit="python", entry_point="k.py::run", sources={"k.py": text}))


def _cpp(text: str) -> list[str]:
    return advice(Solution(task="t", toolkit="cpp", entry_point="k.cpp::run", sources={"k.cpp": text}))


@pytest.mark.parametrize(("task", "name"), SHIPPED)
def test_the_shipped_solutions_get_no_advice(task: str, name: str, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert advice(workspace.solution(workspace.task(task), name)) == []


PYTHON = [
    ("import threading", "imports threading"),
    ("from concurrent.futures import ThreadPoolExecutor", "imports concurrent.futures"),
    ("import os\nos.fork()", "k.py:2: uses os.fork"),
    ("from os import fork as f", "uses os.fork"),
    ("import os as o\no.execve('a', [], {})", "uses os.execve"),
    ("import sys\nsys._getframe(1)", "uses sys._getframe"),
    ("import torch\ntorch.manual_seed(0)", "seeds the global random stream"),
    ("import numpy as np\nnp.random.seed(0)", "seeds the global random stream"),
    ("import torch\ntorch.allclose = lambda *a: True", "changes torch.allclose"),
    ("import torch\ntorch.Tensor.copy_ = None", "changes torch.Tensor.copy_"),
    ("import time as t\nt.process_time_ns = lambda: 0", "changes time.process_time_ns"),
    ("import torch\na, torch.add = 1, 2", "changes torch.add"),
    ("import torch.nn.functional as F\nF.linear = None", "changes torch.nn.functional.linear"),
    ("import torch\nsetattr(torch, 'mm', None)", "setattr changes torch"),
    ("import torch\nvars(torch)['mm'] = None", "changes the names of a module"),
    ("import torch\ntorch.__dict__['mm'] = None", "changes the names of a module"),
    ("import torch\ntorch.__dict__.update(mm=None)", "changes the names of a module"),
    ("import torch\nobject.__setattr__(torch, 'mm', None)", "changes a module"),
    ("globals()['run'] = None", "changes the names of a module"),
    ("def f(): ...\ndef g(): ...\nf.__code__ = g.__code__", "k.py:3: replaces __code__"),
    ("def run(x):\n    x.__class__ = int", "replaces __class__"),
    ("exec('a = 1')", "uses exec"),
    ("seen = {}\ndef run(x):\n    return seen[x.data_ptr()]", "k.py:3: looks up by a tensor's address"),
    ("seen = {}\ndef run(x):\n    key = (x.data_ptr(), 1)\n    return seen.get(key)", "looks up by a tensor's address"),
    ("seen = {}\ndef run(x):\n    return seen.setdefault(id(x), x)", "looks up by a tensor's address"),
    ("last = 0\ndef run(x):\n    if x.data_ptr() == last: return", "compares a tensor's address"),
    ("def run(x, y):\n    try:\n        fast(x, y)\n    except Exception:\n        y.copy_(x)", "falls back to other"),
    ("import torch\nclass Lazy(torch.Tensor): ...", "a class of tensors of its own"),
    ("from torch import Tensor\nclass Lazy(Tensor): ...", "a class of tensors of its own"),
    # Hidden from a search for words.
    ("import torch\nhalf = 10 // 2; torch.cuda.synchronize = lambda: None", "changes torch.cuda.synchronize"),
    ("s = '#'; import threading", "imports threading"),
    ("__import__('thr' + 'eading')", "imports threading"),
    ("import importlib\nimportlib.import_module(f'{\"sub\"}process')", "imports subprocess"),
    ("__import__(name())", "a module whose name is not in the text"),
    ("import os\ngetattr(os, 'fo' 'rk')()", "uses os.fork"),
    ("g = getattr\nimport os\ng(g(__import__('os'), 'fo' + 'rk'), '__call__')()", "uses os.fork"),
    ("import torch\ngetattr(torch, name)", "a name that is not in the text"),
    ("import sys\nsys.modules['time'].time_ns = None", "changes time.time_ns"),
    ("o = __import__('os')\nf = o.fork\nf()", "k.py:2: uses os.fork"),
    ("import base64\nexec(base64.b64decode('YQ=='))", "imports base64"),
    ("s = setattr\nimport torch\ns(torch, 'mm', None)", "setattr changes torch"),
    ("e = exec\ne('a')", "uses exec"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), PYTHON)
def test_python_sources_show_what_is_worth_a_look(text: str, said: str) -> None:
    assert any(said in line for line in _python(text)), _python(text)


HONEST_PYTHON = [
    "# import threading\n'''os.fork()'''\ns = 'exec'",
    "import torch\nm = torch.compile(f)\nm.eval()",
    "import time\nt = time.perf_counter()",
    "class Scratch:\n    def __init__(self, n):\n        self.n = n\n        self.open = True",
    "def run(x):\n    aligned = x.data_ptr() % 64 == 0",
    "def run(x):\n    try:\n        go(x)\n    except ValueError as e:\n        raise RuntimeError(str(e)) from e",
    "import torch\ng = torch.Generator().manual_seed(1)",
    "seen = {}\ndef run(x):\n    return seen.get(x.shape)",
    "this is no python (",
]


@pytest.mark.parametrize("text", HONEST_PYTHON)
def test_honest_python_gets_no_advice(text: str) -> None:
    assert _python(text) == []


CPP = [
    ("int f() { return fork(); }", "k.cpp:1: fork: work in another process"),
    ("\n\nauto t = std::thread(f);", "k.cpp:3: std::thread"),
    ("auto t = std :: async(f);", "std::async"),
    ("void f() { syscall(57); }", "syscall"),
    ("void f() { ::ptrace(0, 0, 0, 0); }", "ptrace"),
    ('void* h = dlopen("libc.so.6", 1);', "dlopen"),
    ("void f() { pthread_create(&t, 0, g, 0); }", "pthread_create"),
    ('void f() { asm volatile("rdtsc"); }', "asm"),
    ("bool b = getenv(name);", "getenv"),
    ("long n = time(nullptr);", "time()"),
    ("long f() { return std::time(nullptr); }", "time()"),
    ("auto n = std::chrono::steady_clock::now();", "chrono"),
    ("static std::unordered_map<const float*, float> seen;", "unordered_map keyed by an address"),
    ("std::map<std::pair<uintptr_t, int>, float> seen;", "map keyed by an address"),
    ("void f(const float* x) { static const float* last = nullptr; }", "static pointer to const"),
    ('#include "/etc/passwd"', "k.cpp:1: #include of a file outside"),
    ('#include "../../secret.h"', "#include of a file outside"),
    ("  #  include </root/x>", "#include of a file outside"),
    ("#include NAME", "#include of a name that is not in the text"),
    ("__attribute__((constructor)) void f() {}", "constructor"),
    # Hidden from a search for words.
    ("#define CALL(a, b) a##b()\nint f() { return CALL(fo, rk); }", "k.cpp:1: token pasting"),
    ("#define CALL(a, b) a%:%:b()", "token pasting"),
    ("int f() { return fo\\\nrk(); }", "fork"),
    ("int f() { return /* a */ fork /* b */ (); }", "fork"),
    ('const char* s = "//"; int n = fork();', "fork"),
    ("char c = '\"'; int n = fork(); char d = '\"';", "fork"),
    ('auto s = R"(" // )"; int n = fork();', "fork"),
    ("int n = 1'000; int m = fork(); char c = 'x';", "fork"),
    ("#define GO fork\nint n = GO();", "k.cpp:1: fork"),
    ('extern "C" int clone(void*);\nint n = clone(0);', "clone()"),
    ("int (*p)() = (int (*)())&exit; void f() { exit(0); }", "exit()"),
    ("/* one\ntwo */ int n = \\\n 3; void f() { fork(); }", "k.cpp:3: fork"),
]


@pytest.mark.parametrize(("text", "said"), CPP)
def test_cpp_sources_show_what_is_worth_a_look(text: str, said: str) -> None:
    assert any(said in line for line in _cpp(text)), _cpp(text)


HONEST_CPP = [
    "// fork()\n/* syscall */ const char* s = \"ptrace\"; auto r = R\"(dlopen)\";",
    '#include "task.h"\n#include <vector>\n#include "lanes.h"',
    "struct S { void write(int); int read(); }; void f(S& s) { s.write(1); s.read(); }",
    "static void write(float* y, float v) { *y = v; }\nvoid f(float* y) { write(y, 1); }",
    "void f(float* x, float* y, int time) { y[0] = x[0] * time; }",
    "static inline float sum(const float *from) { return *from; }",
    "static const char* names[] = {\"a\"};\nstatic thread_local std::vector<float> scratch;",
    "std::map<int, const float*> rows;",
    "namespace mine { void open(int) {} }\nvoid f() { mine::open(1); }",
    "auto m = tensor.clone(); auto n = p->system(1);",
]  # fmt: skip


@pytest.mark.parametrize("text", HONEST_CPP)
def test_honest_cpp_gets_no_advice(text: str) -> None:
    assert _cpp(text) == []


def test_advice_is_short_and_names_each_kind_once_a_file() -> None:
    assert _python("import os\n" + "os.fork()\n" * 50) == [
        "k.py:2: uses os.fork: work in another process is not measured"
    ]
    modules = ["threading", "subprocess", "socket", "ctypes", "inspect", "gc", "signal", "atexit", "mmap", "pickle"]
    modules += ["marshal", "zlib", "base64"]
    lines = _python("\n".join(f"import {name}" for name in modules))
    assert len(lines) == MAX_LINES and lines[-1] == "and 4 more places that are worth a look"


def test_garbage_is_scanned_quickly_and_without_a_word() -> None:
    for text in (
        'R"(' * 50_000,
        "f(" * 100_000,
        "/*" * 100_000,
        "\\\n" * 100_000,
        "\0\"'" * 50_000,
        "static " * 40_000,
    ):
        _cpp(text)
    for text in (
        "a" + ".b" * 5_000,
        "(" * 5_000,
        "-" * 50_000 + "1",
        "\0",
        "\ud800",
        "'\\d'",
        "x" + "[x" * 80 + "]" * 80,
    ):
        assert _python(text) == []


def test_every_file_of_a_solution_is_read_by_its_kind() -> None:
    sources = {"k.cpp": "int n;", "deep/a.hpp": "\nint f() { return fork(); }", "notes.txt": "fork()"}
    solution = Solution(task="t", toolkit="cpp", entry_point="k.cpp::run", sources=sources)
    assert advice(solution) == ["deep/a.hpp:2: fork: work in another process is not measured"]


def _error(ours: float | None, theirs: float | None, allowed: float | None = 1e-5) -> list[str]:
    record = CheckError(
        output="y", rule="rel_l2", error=1e-5, tolerance=1e-5,
        beside_baseline=ours, baseline_error=theirs, beside_tolerance=allowed,
    )  # fmt: skip
    solution = Solution(task="t", toolkit="cpp", entry_point="k.cpp::run", sources={"k.cpp": ""})
    return advice(solution, [record])


def test_an_error_far_above_the_baseline_s_asks_whether_precision_was_cut() -> None:
    said = "y: rel_l2 error 8e-06 is 80 times the baseline's 1e-07 (allowed 1e-05): was precision cut?"
    assert _error(8e-6, 1e-7) == [said]
    assert "where the baseline has none" in _error(8e-6, 0.0)[0]
    assert _error(8e-6, 3e-7) == [] and _error(9e-7, 1e-9) == [] and _error(0.0, 0.0) == []
    assert _error(None, None, None) == [] and _error(5.0, 0.0, 0.0) == []
