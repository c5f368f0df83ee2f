"""The built-in primitives: NumPy functions by short name, indexing, and dtype casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir import calls, factors, incomplete, indexing, orders
from yota.ir.callables import original
from yota.ir.primitive import Primitive
from yota.ir.regions import LOOP
from yota.ir.solved import REGULAR, SOLVED

if TYPE_CHECKING:
    from yota.ir.tape import TapeBuilder


def astype(x: Any, *, dtype: np.dtype[Any]) -> Any:
    """``x`` cast to ``dtype``; from complex to real the imaginary part is dropped."""
    value = np.asarray(x)
    if value.dtype.kind == "c" and dtype.kind != "c":
        value = value.real
    return value.astype(dtype)


def _reshape(x: Any, *, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape) if type(x) is np.ndarray else np.reshape(x, shape)


def item(results: tuple[Any, ...], *, index: int) -> Any:
    """One of several results of a function."""
    return results[index]


def _stack(*operands: Any, axis: int) -> Any:
    if all(isinstance(operand, (float, np.generic)) for operand in operands):
        return np.array(operands)  # the same, sooner
    return np.stack(operands, axis=axis)


def stop_gradient(x: Any) -> Any:
    """``x`` itself, which has no derivative."""
    return x


_EXPANDED: dict[str, Callable[..., Any]] = {"stop_gradient": lambda emitter, operands, static: operands[0]}
"""How primitives are written that are gone once a tape is differentiated."""
_SPECIAL: dict[str, tuple[str, bool, Callable[..., Any]]] = {
    "getitem": ("yota.ir.indexing.getitem", False, indexing.getitem),
    "setitem": ("yota.ir.indexing.setitem", False, indexing.setitem),
    "deposit": ("yota.ir.indexing.deposit", False, indexing.deposit),
    "scatter": ("yota.ir.indexing.scatter", False, indexing.scatter),
    "strides": ("yota.ir.catalog.strides", False, lambda x: np.array(np.asarray(x).strides)),
    "call": ("yota.ir.calls.call", False, calls.call),
    "astype": ("yota.ir.catalog.astype", True, astype),
    "item": ("yota.ir.catalog.item", False, item),
    "stop_gradient": ("yota.ir.catalog.stop_gradient", True, stop_gradient),
    "where": ("numpy.where", True, np.where),
    "real": ("numpy.real", True, np.real),
    "imag": ("numpy.imag", True, np.imag),
    "reshape": ("numpy.reshape", False, _reshape),
    "broadcast_to": ("numpy.broadcast_to", False, np.broadcast_to),
    "einsum": (
        "numpy.einsum",
        False,
        lambda *operands, subscripts: np.einsum(subscripts, *operands, optimize=len(operands) > 2),
    ),
    "concatenate": ("numpy.concatenate", False, lambda *operands, axis: np.concatenate(operands, axis=axis)),
    "stack": ("numpy.stack", False, _stack),
    "sinc": ("numpy.sinc", True, np.sinc),
    "_bessel_order": ("yota.ir.orders.bessel_order", True, orders.bessel_order),
    "_hankel_order": ("yota.ir.orders.hankel_order", True, orders.hankel_order),
    "_beta_order": ("yota.ir.incomplete.beta_order", True, incomplete.beta_order),
    "_gamma_order": ("yota.ir.incomplete.gamma_order", True, incomplete.gamma_order),
    "cofactors": ("yota.ir.factors.cofactors", False, factors.cofactors),
    "lstsq_solution": ("yota.ir.factors.lstsq_solution", False, factors.lstsq_solution),
    **{name: (f"numpy.linalg.{name}", False, getattr(np.linalg, name)) for name in ("inv", "solve", "pinv")},
}
_SEVERAL: dict[str, tuple[str, Callable[..., Any]]] = {
    "eig": ("yota.ir.factors.eig", factors.eig),
    "full_qr": ("yota.ir.factors.full_qr", factors.full_qr),
    "full_svd": ("yota.ir.factors.full_svd", factors.full_svd),
    **{name: (f"numpy.linalg.{name}", getattr(np.linalg, name)) for name in ("eigh", "qr", "slogdet", "svd")},
}
"""Functions with several results."""
_TYPED = {each.name: each for each in (LOOP, SOLVED, REGULAR)}


@cache
def primitive(name: str) -> Primitive:
    """The built-in primitive called ``name``.

    Raises KeyError if NumPy has no such function.

    >>> primitive("exp").elementwise
    True
    """
    if name in _TYPED:
        return _TYPED[name]
    if name in _SPECIAL:
        target, elementwise, function = _SPECIAL[name]
        return Primitive(name, target, elementwise, function, _EXPANDED.get(name))
    if name in _SEVERAL:
        return Primitive(name, _SEVERAL[name][0], False, _SEVERAL[name][1], None, "tensor")
    found = original(getattr(np, name, None))
    if not callable(found) or isinstance(found, type):
        raise KeyError(name)
    elementwise = isinstance(found, np.ufunc) and found.signature is None and found.nout == 1
    several = isinstance(found, np.ufunc) and found.nout > 1
    return Primitive(name, f"numpy.{name}", elementwise, found, None, "elementwise" if several else "")


def item_of(builder: TapeBuilder, result: int, number: int) -> int:
    """The variable of one result of an op that has several."""
    type: Any = builder.types[result]
    return builder.emit(primitive("item"), (result,), {"index": number}, type.parts[number])
