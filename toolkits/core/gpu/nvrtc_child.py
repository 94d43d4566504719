"""Compiles one file with NVRTC: library, source, output, options as arguments; its log on stdout.

Runs as a program of its own in a box, by the standard library alone, and knows nothing of the lab.
"""

import sys
from ctypes import CDLL, POINTER, byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from pathlib import Path


def compile_file(library: str, source: str, output: str, options: list[str]) -> int:
    """NVRTC's result code: 0 is success."""
    nvrtc = CDLL(library)
    program = c_void_p()
    nvrtc.nvrtcCreateProgram.argtypes = [
        *(POINTER(c_void_p), c_char_p, c_char_p, c_int, POINTER(c_char_p), POINTER(c_char_p)),
    ]
    nvrtc.nvrtcCompileProgram.argtypes = [c_void_p, c_int, POINTER(c_char_p)]
    text = Path(source).read_bytes()
    failed = nvrtc.nvrtcCreateProgram(byref(program), text, source.encode(), 0, None, None)
    if not failed:
        given = (c_char_p * len(options))(*[option.encode() for option in options])
        failed = nvrtc.nvrtcCompileProgram(program, len(options), given)
        log = _bytes(nvrtc, "ProgramLog", program)
        sys.stdout.write(log.rstrip(b"\0").decode("utf-8", "replace"))
    if not failed:
        Path(output).write_bytes(_bytes(nvrtc, "CUBIN", program))
    elif failed != 6:  # 6: a compilation error, which the log has told
        nvrtc.nvrtcGetErrorString.restype = c_char_p
        sys.stdout.write(f"nvrtc error : {nvrtc.nvrtcGetErrorString(failed).decode()}\n")
    return int(failed)


def _bytes(nvrtc: CDLL, what: str, program: c_void_p) -> bytes:
    """One of NVRTC's texts or images, by its two functions."""
    size = c_size_t()
    get_size, get = nvrtc[f"nvrtcGet{what}Size"], nvrtc[f"nvrtcGet{what}"]
    get_size.argtypes, get.argtypes = [c_void_p, POINTER(c_size_t)], [c_void_p, c_void_p]
    get_size(program, byref(size))
    buffer = create_string_buffer(size.value)
    get(program, buffer)
    return buffer.raw[: size.value]


if __name__ == "__main__":
    sys.exit(1 if compile_file(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]) else 0)
