"""What is computed while a rule is expanded: arguments of calls, static functions, normal forms of keywords."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from yota.errors import RuleError
from yota.ir.extents import Extent
from yota.ir.indexing import Index, Slice
from yota.ir.primitive import BINARY
from yota.ir.types import TensorType
from yota.rules.language.model import Literal, Parameter, Rule


def extent(x: TensorType, axis: Any) -> int:
    """Number of elements of ``x`` along ``axis``: an int, a tuple or None for all."""
    return math.prod(x.shape[each] for each in axes_of(axis, x.ndim))


def inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that undoes ``axes``."""
    return tuple(axes.index(position) for position in range(len(axes)))


def section(shapes: tuple[tuple[int, ...], ...], i: int, axis: int) -> Index:
    """Where the array number ``i`` lies in the concatenation along ``axis``."""
    start = sum(each[axis] for each in shapes[:i])
    own = shapes[i]
    entries = [Slice(0, extent) for extent in own]
    entries[axis] = Slice(start, start + own[axis])
    return tuple(entries)


def layer(shape: tuple[int, ...], i: int, axis: int) -> Index:
    """Where the array number ``i`` lies in a stack of ``shape`` along ``axis``."""
    return tuple(i if position == axis else Slice(0, extent) for position, extent in enumerate(shape))


def span(shapes: tuple[tuple[int, ...], ...], i: int) -> Index:
    """Where the elements of the array number ``i`` lie in a vector of all elements."""
    start = sum(map(math.prod, shapes[:i]))
    return (Slice(start, start + math.prod(shapes[i])),)


def dual(norm: str) -> str:
    """The scaling of the inverse Fourier transform that makes it the adjoint of the one with scaling ``norm``."""
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)


STATIC_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
    "dtype": lambda x: x.dtype,
    "shapes": lambda *xs: tuple(x.shape for x in xs),
    "pull": lambda host: host.pull,
    **{function.__name__: function for function in (extent, inverse, section, span, layer, dual)},
}
"""Functions of shapes, dtypes and keywords; an array among their arguments counts by its type only."""


OPERATORS: dict[str, Callable[..., Any]] = {
    **{name: each.function for name, each in BINARY.items() if name not in ("power", "matmul")},
    "negative": operator.neg,
    "positive": operator.pos,
}
_LARGEST = 1024


def arithmetic(name: str, values: tuple[Any, ...]) -> Any:
    """An operator on numbers or tuples as Python computes it, or NotImplemented; ArithmeticError if it is too large."""
    if name == "power":
        base, exponent = values
        if isinstance(base, int) and isinstance(exponent, int) and (abs(base) > 2**53 or not 0 <= exponent <= 64):
            base = float(base)
        if abs(exponent) > _LARGEST:
            raise OverflowError(f"the exponent {exponent!r} is larger than {_LARGEST}")
        return base**exponent
    python = OPERATORS.get(name)
    if python is None:
        return NotImplemented
    if name == "multiply" and any(isinstance(value, (tuple, str)) for value in values):
        raise ArithmeticError("a tuple cannot be multiplied")
    return python(*values)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """``axis``, an int or several, as a sorted tuple of non-negative ints; None means all."""
    if axis is None:
        return tuple(range(ndim))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (operator.index(axis),)
    return tuple(sorted(normalize_axis_tuple(axes, ndim)))


def axis_of(axis: int, ndim: int) -> int:
    """``axis`` counted from the front."""
    return normalize_axis_index(operator.index(axis), ndim)


_REDUCTIONS = frozenset("sum prod max min any all count_nonzero".split())
_SCANS = frozenset("cumsum cumprod concatenate argsort".split())


def normalised(name: str, static: dict[str, Any], operands: tuple[TensorType, ...]) -> dict[str, Any]:
    """``static`` in the one form in which it stands on a tape: axes counted from the front, full tuples.

    >>> normalised("sum", {"axis": -1, "keepdims": False}, (TensorType(np.dtype(float), (2, 3)),))
    {'axis': (1,), 'keepdims': False}
    """
    found = dict(static)
    if name in _REDUCTIONS:
        found["axis"] = axes_of(found.get("axis"), operands[0].ndim)
        found["keepdims"] = bool(found.get("keepdims", False))
    elif name in _SCANS:
        found["axis"] = axis_of(found["axis"], operands[0].ndim)
    elif name == "stack":
        found["axis"] = axis_of(found["axis"], operands[0].ndim + 1)
    elif name in ("argmax", "argmin") and found.get("axis") is not None:
        found["axis"] = axis_of(found["axis"], operands[0].ndim)
    elif name == "transpose":
        count = operands[0].ndim
        axes = found.get("axes")
        found["axes"] = tuple(range(count))[::-1] if axes is None else tuple(axis_of(each, count) for each in axes)
    elif name in ("reshape", "broadcast_to"):
        found["shape"] = _extents(found["shape"], operands[0].size if name == "reshape" else None)
    elif name == "astype":
        found["dtype"] = np.dtype(found["dtype"])
    return found


def _extents(shape: Any, size: int | None) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if size is not None and extents.count(-1) == 1:
        known = math.prod(each for each in extents if each != -1)
        extents = tuple(size // known if each == -1 else each for each in extents)
    return tuple(each if isinstance(each, Extent) else operator.index(each) for each in extents)


def bind(
    rule: Rule, arguments: list[Any], keywords: dict[str, Any], constant: Callable[[float], Any] = lambda value: value
) -> tuple[list[Any], dict[str, Any]]:
    """Operands and static keywords of a call of the primitive that ``rule`` describes.

    Operands may be given by name. Positional arguments beyond them are the rule's keywords in their order. What is left
    out takes its default; ``constant`` turns that of an operand into what ``arguments`` consist of.

    Raises RuleError if the call does not fit the signature.
    """
    fixed = [parameter for parameter in rule.operands if not parameter.variadic]
    if not keywords and len(arguments) == len(fixed) == len(rule.parameters):
        return list(arguments), {}
    variadic = len(fixed) < len(rule.operands)
    arguments, keywords = list(arguments), dict(keywords)
    for parameter in fixed[len(arguments) :]:
        if parameter.name in keywords:
            arguments.append(keywords.pop(parameter.name))
        elif isinstance(parameter.default, Literal):
            arguments.append(constant(parameter.default.value))
        else:
            break
    if len(arguments) < len(fixed):
        raise RuleError(f"{rule.name} takes {len(fixed)} operands, found {len(arguments)}")
    operands, rest = (arguments, []) if variadic else (arguments[: len(fixed)], arguments[len(fixed) :])
    if len(rest) > len(rule.keywords):
        raise RuleError(f"{rule.name} takes at most {len(rule.parameters)} arguments, found {len(arguments)}")
    static = dict(zip((parameter.name for parameter in rule.keywords), rest, strict=False))
    for name, value in keywords.items():
        if name in static:
            raise RuleError(f"{rule.name} is given `{name}` twice")
        if not any(parameter.name == name for parameter in rule.keywords):
            raise RuleError(f"{rule.name} has no keyword `{name}`")
        static[name] = value
    for parameter in rule.keywords:
        if parameter.name not in static:
            static[parameter.name] = _default(rule, parameter)
    return operands, static


def _default(rule: Rule, parameter: Parameter) -> Any:
    if not isinstance(parameter.default, Literal):
        raise RuleError(f"{rule.name} needs the keyword `{parameter.name}`")
    return parameter.default.value
