"""What a cubin's own headers say of its kernels: the launch limits compiled into them. Reads ELF, runs nothing."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from toolkits.core.errors import InvalidInput

_MAX_THREADS = 0x05
_CTA_PER_CLUSTER = 0x3D
_SIZED = 0x04
_INFO = ".nv.info."


@dataclass(frozen=True)
class Limits:
    """What `__launch_bounds__` and `__cluster_dims__` left in the machine code."""

    threads: int | None = None
    """Most of a block; None: the source does not say."""
    cluster: int = 1
    """Blocks of a cluster."""


def limits(image: bytes) -> dict[str, Limits]:
    """Mangled name -> limits, of every kernel."""
    found: dict[str, Limits] = {}
    for name, content in _sections(image):
        if name.startswith(_INFO):
            attributes = dict(_attributes(content))
            threads, cluster = attributes.get(_MAX_THREADS), attributes.get(_CTA_PER_CLUSTER)
            found[name.removeprefix(_INFO)] = Limits(
                _product(threads) if threads else None, _product(cluster) if cluster else 1
            )
    return found


def _product(words: bytes) -> int:
    product = 1
    for (word,) in struct.iter_unpack("<I", words):
        product *= word
    return product


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Four bytes a head: format, attribute, and a value or the size of what follows."""
    at = 0
    while at + 4 <= len(content):
        form, attribute, size = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == _SIZED:
            yield attribute, content[at : at + size]
            at += size


def _sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    if image[:5] != b"\x7fELF\x02":
        raise InvalidInput("this is no cubin: it must be a 64-bit ELF file")
    try:
        (table,) = struct.unpack_from("<Q", image, 0x28)
        size, count, names = struct.unpack_from("<HHH", image, 0x3A)
        heads = [struct.unpack_from("<IIQQQQ", image, table + number * size) for number in range(count)]
        texts = heads[names][4]
        for name, kind, _flags, _address, offset, length in heads:
            start = texts + name
            text = image[start : image.index(b"\0", start)].decode("utf-8", "replace")
            yield text, b"" if kind == 8 else image[offset : offset + length]
    except (struct.error, IndexError, ValueError) as error:
        raise InvalidInput(f"this cubin is damaged: {error}") from error
