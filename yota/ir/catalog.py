"""The built-in primitives: NumPy functions by short name, indexing, and dtype casts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir import calls, factors, incomplete, indexing, integrals, orders
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


def strides(x: Any) -> Any:
    """The strides of an array."""
    return np.array(np.asarray(x).strides)


def stop_gradient(x: Any) -> Any:
    """``x`` itself, which has no derivative."""
    return x


_EXPANDED: dict[str, Callable[..., Any]] = {"stop_gradient": lambda emitter, operands, static: operands[0]}
"""How primitives are written that are gone once a tape is differentiated."""
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (astype, stop_gradient, np.where, np.real, np.imag, np.sinc)},
    **{f"_{each.__name__}": each for each in (orders.bessel_order, orders.hankel_order)},
    **{f"_{each.__name__}": each for each in (incomplete.gamma_order, incomplete.gamma_curvature)},
    **{f"_{each.__name__}": each for each in (incomplete.beta_order, incomplete.beta_curvature, incomplete.beta_mixed)},
    **{f"_{each.__name__}": each for each in (integrals.carlson, integrals.hurwitz)},
}
_TENSOR: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (indexing.getitem, indexing.setitem, indexing.deposit, indexing.scatter)},
    **{each.__name__: each for each in (calls.call, item, factors.cofactors, factors.lstsq_solution, strides)},
    **{name: getattr(np.linalg, name) for name in ("inv", "solve", "pinv")},
}
_KEYWORDS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape,
    "broadcast_to": np.broadcast_to,
    "einsum": lambda *operands, subscripts: np.einsum(subscripts, *operands, optimize=len(operands) > 2),
    "concatenate": lambda *operands, axis: np.concatenate(operands, axis=axis),
    "stack": _stack,
}
"""NumPy's functions with operands one by one, and all else by keyword."""
_SEVERAL: dict[str, Callable[..., Any]] = {
    **{each.__name__: each for each in (factors.eig, factors.full_qr, factors.full_svd)},
    **{name: getattr(np.linalg, name) for name in ("eigh", "qr", "slogdet", "svd")},
}
"""Functions with several results."""
_TYPED = {each.name: each for each in (LOOP, SOLVED, REGULAR, indexing.POSITIONS)}


@cache
def primitive(name: str) -> Primitive:
    """The built-in primitive called ``name``.

    Raises KeyError if NumPy has no such function.

    >>> primitive("exp").elementwise
    True
    """
    if name in _TYPED:
        return _TYPED[name]
    if name in _KEYWORDS:
        return Primitive(name, f"numpy.{name}", False, _KEYWORDS[name])
    for table in (_ELEMENTWISE, _TENSOR, _SEVERAL):
        if name in table:
            own = table[name]
            target, expand = f"{own.__module__}.{own.__name__}", _EXPANDED.get(name)
            return Primitive(name, target, table is _ELEMENTWISE, own, expand, "tensor" if table is _SEVERAL else "")
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
