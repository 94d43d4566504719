"""Names of kernels as their source has them. Asks c++filt, which every C++ compiler here brings."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from toolkits.core import process
from toolkits.core.compiler import enclosed, environment, name_inside

_MOST = 200
_PLAIN = re.compile(r"_Z(\d+)([A-Za-z_]\w*)")
_ANONYMOUS = "(anonymous namespace)::"


async def demangled(names: Iterable[str], work: Path) -> dict[str, str]:
    """Mangled name -> the function, with its types where c++filt was asked; without c++filt names stay as they are."""
    wanted = list(dict.fromkeys(name for name in names if name.startswith("_Z")))[:_MOST]
    plain = {name: simple for name in wanted if (simple := _simple(name))}
    return plain | await _asked([name for name in wanted if name not in plain], work)


def _simple(name: str) -> str:
    """A function of no namespace and no template, which needs no program to be read; empty: it does."""
    match = _PLAIN.fullmatch(name)
    length = int(match[1]) if match else 0
    return match[2][:length] if match and match[2][length : length + 1] != "I" else ""


async def _asked(wanted: list[str], work: Path) -> dict[str, str]:
    program = shutil.which("c++filt")
    if not wanted or not program:
        return {name: name for name in wanted}
    command = enclosed([program, *wanted], work, ".")
    done = await process.run(command, cwd=work, timeout_s=10, env=environment(name_inside(work)), keep=1_000_000)
    lines = done.output.splitlines()
    return dict(zip(wanted, lines, strict=True)) if len(lines) == len(wanted) else {name: name for name in wanted}


def short(full: str) -> str:
    """`void ns::kernel<96>(float const*)` as `ns::kernel<96>`."""
    text = full.replace(_ANONYMOUS, "")
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0:
            text = text[:at]
            break
    head, _, rest = text.partition("<")
    head = head.rpartition(" ")[2]
    return re.sub(r"\((?:int|unsigned int|bool|long|unsigned long)\)", "", f"{head}<{rest}" if rest else head)


def base(name: str) -> str:
    """Without namespaces and template arguments: what a launch names."""
    return name.partition("<")[0].rpartition("::")[2]
