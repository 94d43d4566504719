"""Child process that calls an OpenCL solution once on recorded arguments, for a tool that watches this process.

    python opencl_call.py FOLDER        with opencl_host.py, launch.json and the sources beside it

FOLDER/arguments.txt is the list that the native driver reads too. Knows neither a task nor a solution.
"""

import json
import struct
import sys
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import opencl_host  # pyright: ignore[reportMissingImports]  it lies beside this file where this file runs

Json = dict[str, Any]
FORMATS = {"float32": "f", "float64": "d", "int32": "i", "int64": "q", "bool": "?", "float16": "e", "bfloat16": "H"}
LAST_WORDS = "driver: done"


class Memory:
    """A tensor as the host wants it, without torch."""

    def __init__(self, content: bytes, shape: tuple[int, ...]) -> None:
        self.content = np.frombuffer(bytearray(content), dtype=np.uint8)
        self.shape = shape

    def data_ptr(self) -> int:
        return int(self.content.ctypes.data)

    def numel(self) -> int:
        return prod(self.shape)


def arguments(folder: Path, launch: Json) -> list[Any]:
    """Inputs and outputs in order; the sizes that vary follow them in the list."""
    lines = [line.split() for line in (folder / "arguments.txt").read_text(encoding="utf-8").splitlines()]
    contents = [bytes(int(size)) if name == "-" else (folder / name).read_bytes() for size, name in lines]
    count = len(launch["names"])
    axes = zip(launch["axes"], contents[count:], strict=False)
    sizes = launch["constants"] | {axis: struct.unpack("q", content)[0] for axis, content in axes}
    return [_argument(launch["tensors"][name], contents[place], sizes) for place, name in enumerate(launch["names"])]


def _argument(spec: Json, content: bytes, sizes: dict[str, int]) -> Any:
    if spec["shape"] is None:
        return struct.unpack(FORMATS[spec["dtype"]], content)[0]
    return Memory(content, tuple(opencl_host.size_of(text, sizes) for text in spec["shape"]))


if __name__ == "__main__":
    launch = json.loads((Path.cwd() / "launch.json").read_text(encoding="utf-8"))
    getattr(opencl_host, launch["function"])(*arguments(Path(sys.argv[1]), launch))
    print(LAST_WORDS, file=sys.stderr)  # noqa: T201
