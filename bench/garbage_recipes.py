"""Random garbage in the shape of a solution folder: mutated, truncated, random, huge. Knows no lab and no judge."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Files = dict[str, bytes]
"""Name -> content of one solution folder."""

TASK = "scale"
TASK_FILES = {
    "task.yaml": """
name: scale
title: Scale
op_type: elementwise
description: y = 2 x
axes: {n: {type: var}}
inputs: {x: {shape: [n], dtype: float32}}
outputs: {y: {shape: [n], dtype: float32}}
checks: [{output: y, rule: rel_l2, tolerance: 1.0e-6}]
distributions: {normal: {description: "N(0, 1)"}}
correctness: [{n: 65}]
baselines: [torch]
start: torch
call_timeout_s: 0.3
""",
    "workloads.jsonl": '{"uuid": "only", "axes": {"n": 4096}}\n',
    "reference.py": """
import torch

def make_inputs(axes, distribution, generator):
    return {"x": torch.randn(axes["n"], generator=generator)}

def reference(inputs):
    return {"y": inputs["x"].double() * 2}

def refresh(inputs, draw):
    draw.normal(inputs["x"])
""",
    "solutions/torch/solution.yaml": "toolkit: python\nentry_point: main.py::run\n",
    "solutions/torch/main.py": "import torch\n\n\ndef run(x, y):\n    torch.mul(x, 2, out=y)\n",
}
PYTHON, CPP = "toolkit: python\nentry_point: main.py::run\n", "toolkit: cpp\nentry_point: main.cpp::run\n"
HONEST_PYTHON = TASK_FILES["solutions/torch/main.py"]
HONEST_CPP = """#include "task.h"
extern "C" void run(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];
}
"""
PIECES = (
    "",
    "0",
    "-1",
    "1e400",
    "(",
    ")",
    "{",
    "}",
    ";",
    "\n",
    "x",
    "y",
    "n",
    "import os",
    "return",
    "while",
    '"',
    "#",
    "\\",
)
HUGE = (
    "print('y' * 3_000_000)",
    "raise ValueError('e' * 3_000_000)",
    "raise ValueError('\\x1b[2J\\n' * 1000)",
    "import os\n    os.write(2, bytes(range(256)) * 4000)",
    "import os\n    os._exit(7)",
    "x.new_empty(1 << 45)",
    "return [y] * 100_000",
)
LOUD_CPP = ("#include __FILE__\n", "#warning loud\n" * 3000, "int a = nothing;\n" * 2000, "#error \x1b[31mred\x1b[0m\n")
SUBTLE_PYTHON = (
    "torch.mul(x, {number}, out=y)",
    "y.copy_(x * 2 + {number})",
    "y[{place}:] = 2 * x[{place}:]",
    "y[x.argmax() + {place}] = {number}",
    "torch.mul(x, 2, out=y)\n    x.mul_({number})",
    "torch.mul(x[{place}:], 2, out=y)",
    "y.resize_({place})",
    "y.set_(2 * x)",
    "torch.as_strided(y, ({place} * 4000,), (1,)).fill_({number})",
)
SUBTLE_CPP = "for (int64_t i = {place}; i < n + {place} * {number}; ++i) y[i] = 2.0f * x[i];"
"""It builds, and reads or writes what it should not."""
BROKEN_YAML = (
    b"",
    b"\xff\xfe",
    b"[1, 2]",
    b"toolkit: [",
    b"toolkit: cpp\nentry_point: main.cpp::run\nflags: [-fplugin=x]\n",
    b"toolkit: cobol\nentry_point: main.py::run\n",
    b"toolkit: python\nentry_point: main.py::run\nparameters: {a: 2001-99-99}\n",
    b"toolkit: python\nentry_point: main.py::run\nsources: {main.py: x}\n",
    b"a: &a [*a]\n",
    b"toolkit: python\nentry_point: main.py::run\ndescription: " + b"[" * 20_000,
)
ENTRIES = (
    "main.py",
    "main.py::",
    "::run",
    "other.py::run",
    "main.py::gone",
    "../main.py::run",
    "main.py::run::run",
    "/etc/passwd::run",
)


@dataclass(frozen=True)
class Recipes:
    """Seeded: the same seed gives the same garbage."""

    random: random.Random
    python: list[str]
    """Sources to spoil; ours, and those of others, whose functions take other arguments."""
    cpp: list[str]

    def next(self) -> Files:
        """One solution folder. Little of it reaches the compiler, which takes most of the time."""
        kinds: dict[Callable[[], Files], int] = {
            self._mutated_python: 34,
            self._foreign_python: 14,
            self._truncated_python: 10,
            self._random_text: 8,
            self._random_bytes: 6,
            self._huge: 12,
            self._subtle_python: 20,
            self._subtle_cpp: 4,
            self._broken_yaml: 8,
            self._wrong_entry: 7,
            self._mutated_cpp: 8,
            self._foreign_cpp: 2,
            self._truncated_cpp: 1,
            self._loud_cpp: 1,
        }
        return self.random.choices(list(kinds), list(kinds.values()))[0]()

    def _mutated(self, text: str) -> str:
        for _ in range(self.random.randint(1, 4)):
            start = self.random.randrange(len(text) + 1)
            end = min(start + self.random.choice((0, 1, 1, 2, 5, 20)), len(text))
            text = text[:start] + self.random.choice(PIECES) + text[end:]
        return text

    def _cut(self, text: str) -> str:
        return text[: self.random.randrange(len(text) + 1)]

    def _mutated_python(self) -> Files:
        return _folder(PYTHON, "main.py", self._mutated(HONEST_PYTHON))

    def _foreign_python(self) -> Files:
        return _folder(PYTHON, "main.py", self._mutated(self.random.choice(self.python)))

    def _truncated_python(self) -> Files:
        return _folder(PYTHON, "main.py", self._cut(self.random.choice([HONEST_PYTHON, *self.python])))

    def _random_text(self) -> Files:
        text = "".join(chr(self.random.choice((10, 32, *range(33, 127), 0x85, 0x202E, 0x1F600))) for _ in range(300))
        return _folder(PYTHON, "main.py", text)

    def _random_bytes(self) -> Files:
        return _folder(PYTHON, "main.py", "") | {self.random.choice(("main.py", "x.h")): self.random.randbytes(500)}

    def _huge(self) -> Files:
        tag = self.random.random()  # each its own content: the same would be the same build
        return _folder(PYTHON, "main.py", f"def run(x, y):\n    {self.random.choice(HUGE)}\n# {tag}\n")

    def _filled(self, text: str) -> str:
        number = self.random.choice(("2", "2.001", "-1", "0", "1e30", "1000000"))
        return text.format(number=number, place=self.random.choice((0, 1, -1, 7, 64, 65, 10_000)))

    def _subtle_python(self) -> Files:
        line = self._filled(self.random.choice(SUBTLE_PYTHON))
        return _folder(PYTHON, "main.py", f"import torch\n\n\ndef run(x, y):\n    {line}\n")

    def _subtle_cpp(self) -> Files:
        before, _, after = HONEST_CPP.partition("  for")
        return _folder(CPP, "main.cpp", f"{before}  {self._filled(SUBTLE_CPP)}{after[after.index(chr(10)) :]}")

    def _broken_yaml(self) -> Files:
        text = self.random.choice(BROKEN_YAML) if self.random.random() < 0.6 else self._mutated(PYTHON).encode()
        return {"solution.yaml": text, "main.py": HONEST_PYTHON.encode()}

    def _wrong_entry(self) -> Files:
        return _folder(f"toolkit: python\nentry_point: {self.random.choice(ENTRIES)}\n", "main.py", HONEST_PYTHON)

    def _mutated_cpp(self) -> Files:
        return _folder(CPP, "main.cpp", self._mutated(HONEST_CPP))

    def _foreign_cpp(self) -> Files:
        return _folder(CPP, "main.cpp", self._mutated(self.random.choice(self.cpp)))

    def _truncated_cpp(self) -> Files:
        return _folder(CPP, "main.cpp", self._cut(self.random.choice([HONEST_CPP, *self.cpp])))

    def _loud_cpp(self) -> Files:
        return _folder(CPP, "main.cpp", f"// {self.random.random()}\n{self.random.choice(LOUD_CPP)}{HONEST_CPP}")


def _folder(yaml: str, name: str, text: str) -> Files:
    return {"solution.yaml": yaml.encode(), name: text.encode("utf-8", "replace")}


def recipes(seed: int, checkout: Path) -> Recipes:
    """With the shipped sources and those of the corpus, where there is one."""
    found = [path for folder in ("kernels", "tests/cheats") for path in sorted((checkout / folder).glob("**/*.*"))]
    texts = {suffix: [path.read_text("utf-8") for path in found if path.suffix == suffix] for suffix in (".py", ".cpp")}
    return Recipes(random.Random(seed), texts[".py"], texts[".cpp"])


def write(files: Files, folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
