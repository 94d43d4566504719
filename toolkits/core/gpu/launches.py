"""What a CUDA or HIP source says of its launches: `kernel<<<grid, block, shared>>>`, where the numbers can be read.

A reading of text, not a compiler: what it cannot read it leaves out, and says nothing about.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Sources may be hostile: each of these is linear in what it reads.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+\\?(?:"|$)', re.MULTILINE)
_KERNEL = re.compile(r"\b(?P<name>[A-Za-z_]\w*+)\s*+(?:<[^<>;]{0,200}>\s*+)?<<<")
_CONSTANT = re.compile(
    r"\b(?:(?:static|inline|constexpr|const)\s++)++(?:unsigned\s++)?(?:auto|int|unsigned|long|size_t|u?int(?:32|64)_t)\s++"
    r"(?P<name>\w++)\s*+(?:=\s*+(?P<value>[^;{}]{1,200});|\{(?P<braced>[^{};]{1,200})\}\s*+;)"
)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(?P<name>\w+)[ \t]+(?P<value>[^\n]{1,200})$", re.MULTILINE)
_DIM3 = re.compile(r"\bdim3\s++(?P<name>\w++)\s*+(?:=\s*+dim3\s*+)?[({](?P<value>[^;]{0,200})[)}]\s*+;")
_CALL_DIM3 = re.compile(r"dim3\s*[({](?P<value>.*)[)}]", re.DOTALL)
_CAST = re.compile(r"\(\s*(?:unsigned|int|size_t|u?int(?:32|64)_t|unsigned int|long)\s*\)|static_cast<[\w\s]+>")
_SIZEOF = re.compile(r"sizeof\s*\(\s*(?P<type>[\w\s]+?)\s*\)")
_SUFFIX = re.compile(r"\b(0x[0-9a-fA-F]+|\d+)(?:[uU]?[lL]{0,2}|[lL]{1,2}[uU])\b")
_TYPES_BY_SIZE = {
    1: "char int8_t uint8_t bool",
    2: "half __half __nv_bfloat16 short int16_t uint16_t",
    4: "int unsigned float int32_t uint32_t half2 __half2",
    8: "double int64_t uint64_t size_t float2 int2",
    16: "float4 int4 uint4 double2",
}
_SIZES = {name: size for size, names in _TYPES_BY_SIZE.items() for name in names.split()}
_MOST_TEXT, _MOST_CONSTANTS = 1_000, 5_000
MAY_RAISE = re.compile(r"FuncSetAttribute\b|MaxDynamicSharedMemorySize")
"""Calls that let a kernel have more dynamic shared memory than the default."""


@dataclass(frozen=True)
class Launch:
    """One launch in a source; None: it cannot be read there."""

    kernel: str
    """Without namespace and template arguments."""
    file: str
    line: int
    threads: int | None = None
    """Of a block."""
    dynamic_shared_bytes: int | None = None


def launches(sources: Mapping[str, str], known: Mapping[str, int]) -> list[Launch]:
    """Every launch of every source; `known` gives names a value, such as tunables and the task's constant axes."""
    texts = {name: plain(text) for name, text in sources.items()}
    constants = _constants("\n".join(texts.values()), known)
    return [launch for name, text in texts.items() for launch in _of_file(name, text, constants)]


def defined(sources: Mapping[str, str], kernel: str) -> tuple[str, int | None]:
    """File and line of a kernel's definition; nothing where it cannot be read."""
    for file, text in sources.items():
        if match := re.search(rf"__global__[^;{{}}]{{0,400}}?\b{kernel}\s*+\(", plain(text)):
            return file, text.count("\n", 0, match.end()) + 1
    return "", None


def plain(text: str) -> str:
    """Code without comments and strings, its lines where they were."""
    blank = _COMMENT.sub(lambda match: "\n" * match[0].count("\n") or " ", text)
    return _STRING.sub('""', blank)


def _of_file(file: str, text: str, constants: Mapping[str, int]) -> Iterator[Launch]:
    blocks = {match["name"]: match["value"] for match in _DIM3.finditer(text)}
    for match in _KERNEL.finditer(text):
        end = text.find(">>>", match.end())
        arguments = _split(text[match.end() : end]) if 0 <= end < match.end() + _MOST_TEXT else []
        line = text.count("\n", 0, match.start()) + 1
        block = arguments[1].strip() if len(arguments) > 1 else ""
        shared = number(arguments[2], constants) if len(arguments) > 2 else 0 if block else None
        yield Launch(match["name"], file, line, _threads(blocks.get(block, block), constants), shared)


def _threads(text: str, constants: Mapping[str, int]) -> int | None:
    """`256`, `dim3(32, 8)` or the arguments of a dim3 variable."""
    match = _CALL_DIM3.fullmatch(text)
    product = 1
    for part in _split(match["value"] if match else text):
        size = number(part, constants)
        if size is None:
            return None
        product *= size
    return product


def _split(text: str) -> list[str]:
    """At commas outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _constants(text: str, known: Mapping[str, int]) -> dict[str, int]:
    """Values of names that the text defines once; a name with two values has none."""
    found, doubtful = dict(known), set[str]()
    values = [(match["name"], match["value"] or match["braced"]) for match in _CONSTANT.finditer(text)]
    values += [(match["name"], match["value"]) for match in _DEFINE.finditer(text) if match["name"] not in known]
    for name, value in values[:_MOST_CONSTANTS]:
        size = number(value, found)
        if size is None or found.get(name, size) != size:
            doubtful.add(name)
        else:
            found[name] = size
    return {name: value for name, value in found.items() if name not in doubtful}


def number(text: str, constants: Mapping[str, int]) -> int | None:
    """The value of an integer expression; None: some of it is not known."""
    text = _SIZEOF.sub(lambda match: str(_SIZES.get(match["type"], "unknown")), _CAST.sub("", text))
    text = _SUFFIX.sub(r"\1", text).replace("/", "//").strip()
    try:
        with warnings.catch_warnings(action="ignore"):
            return _value(ast.parse(text, mode="eval").body, constants)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, constants: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return constants.get(name)
        case ast.BinOp(left=left, op=op, right=right):
            sides = _value(left, constants), _value(right, constants)
            return None if sides[0] is None or sides[1] is None else _applied(op, sides[0], sides[1])
        case _:
            return None


def _applied(op: ast.operator, left: int, right: int) -> int | None:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return left // right
        case ast.LShift() if 0 <= right < 64:
            return left << right
        case _:
            return None
