"""bfloat16 in Triton's interpreter, which computes with its bits as if they were integers: here its values are float32.

Memory stays bfloat16: what is loaded is widened, what is stored or cast is rounded to the nearest. Arithmetic between
the two is more exact than a GPU's. Runs in workers only, beside a solution: on the standard library, numpy and triton.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

BITS = np.dtype(np.uint16)


def _widened(bits: Any) -> Any:
    return (np.asarray(bits, dtype=np.uint32) << 16).view(np.float32)


def _narrowed(values: Any) -> Any:
    """The nearest, of two as near the even one; what is not a number stays none."""
    wide = np.asarray(values, dtype=np.float32)
    bits = wide.view(np.uint32)
    nearest = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    return np.where(np.isnan(wide), 0x7FC0, nearest).astype(BITS)


class _Wide:
    """Triton's own functions, for values of type bfloat16 with others in between."""

    def __init__(self, interpreter: Any, language: Any) -> None:
        self._interpreter, self._language = interpreter, language
        self._handle, self._narrow, self._float = interpreter.TensorHandle, language.bfloat16, language.float32
        self._numpy_type, self._fits = interpreter._get_np_dtype, interpreter._validate_np_data_size
        builder = interpreter.InterpreterBuilder
        self._between, self._bits, self._absolute = (
            builder.create_fp_to_fp,
            builder.create_bitcast,
            builder.create_fabs,
        )

    def numpy_type(self, kind: Any) -> Any:
        element = kind.element_ty if isinstance(kind, self._language.block_type) else kind
        return np.dtype(np.float32) if element == self._narrow else self._numpy_type(kind)

    def fits(self, data: Any, kind: Any) -> bool:
        return kind.scalar == self._narrow or self._fits(data, kind)

    def cast(self, _: Any, value: Any, to: Any) -> Any:
        data = value.data.astype(self.numpy_type(to))
        return self._handle(_widened(_narrowed(data)) if to.scalar == self._narrow else data, to.scalar)

    def between_floats(self, builder: Any, value: Any, to: Any, rounding: Any) -> Any:
        """Eight bits come and go by way of float32."""
        if value.dtype.scalar == self._narrow:
            value = self._handle(value.data, self._float)
            return value if to.scalar == self._float else self._between(builder, value, to, rounding)
        if to.scalar == self._narrow:
            return self.cast(builder, self._between(builder, value, self._float, None), to)
        return self._between(builder, value, to, rounding)

    def bits(self, builder: Any, value: Any, to: Any) -> Any:
        if self._narrow not in (value.dtype.scalar, to.scalar) or value.dtype.scalar == to.scalar:
            return self._bits(builder, value, to)
        if to.scalar == self._narrow:
            return self._handle(_widened(value.data.view(BITS)), to.scalar)
        return self._handle(_narrowed(value.data).view(self._numpy_type(to)), to.scalar)

    def absolute(self, builder: Any, value: Any) -> Any:
        if value.dtype.scalar == self._narrow:
            return self._handle(np.abs(value.data), value.dtype.scalar)
        return self._absolute(builder, value)

    def load(self, _: Any, pointers: Any, mask: Any, other: Any, *__: Any, **___: Any) -> Any:
        kind = pointers.get_element_ty()
        narrow = kind == self._narrow
        here = BITS if narrow else self.numpy_type(kind)
        rest = np.zeros_like(pointers.data, dtype=here) if other is None else other.data
        rest = _narrowed(rest) if narrow and other is not None else rest
        data = self._interpreter._interpreter.load(pointers.data, mask.data, rest, here)
        return self._handle(_widened(data) if narrow else data, kind)

    def store(self, _: Any, pointers: Any, value: Any, mask: Any, *__: Any, **___: Any) -> Any:
        data = _narrowed(value.data) if value.dtype.scalar == self._narrow else value.data
        return self._interpreter._interpreter.store(pointers.data, data, mask.data)


def install() -> None:
    """From now on every value of type `tl.bfloat16` is held as float32."""
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    wide = _Wide(interpreter, importlib.import_module("triton.language"))
    interpreter._get_np_dtype, interpreter._validate_np_data_size = wide.numpy_type, wide.fits
    for name, function in (
        ("cast_impl", wide.cast),
        ("create_fp_to_fp", wide.between_floats),
        ("create_bitcast", wide.bits),
        ("create_fabs", wide.absolute),
        ("create_masked_load", wide.load),
        ("create_masked_store", wide.store),
    ):
        setattr(interpreter.InterpreterBuilder, name, _method(function))


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a class: it is given the builder."""

    def method(builder: Any, *arguments: Any, **named: Any) -> Any:
        return function(builder, *arguments, **named)

    return method
