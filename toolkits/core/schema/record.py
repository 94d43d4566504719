"""The base of every type, and the words that several of them use."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

DType = Literal["float32", "float64", "float16", "bfloat16", "int32", "int64", "bool"]
Json = dict[str, Any]
Bottleneck = Literal["memory", "compute", "latency", "occupancy", "launch", "host", "branches", "unknown"]
"""What limits a program or a kernel."""


class Record(BaseModel):
    """Base of every type here: immutable, strict about unknown fields, documented by attribute docstrings."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        defer_build=True,  # validators are built at first use: most processes need few of these types
    )
