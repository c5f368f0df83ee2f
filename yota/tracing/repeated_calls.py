"""Calls that become one op: which op, remembered by the kinds of the arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import to_numpy
from yota.ir.tape import Op
from yota.tracing.current import innermost
from yota.tracing.implementations import BY_KIND
from yota.tracing.memory import by_layout
from yota.tracing.methods import is_tracer
from yota.tracing.views import long_axes

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_MOST = 8192
"""Kinds of calls that are remembered; then all are forgotten."""
_NUMBERS = {int, float, complex, bool, np.float64}
_LITERALS = {int, bool, str, type(None), type, type(np._NoValue), type(Ellipsis)}
_array, _concatenate = np.array, np.concatenate  # while a trace runs, recording forms stand in their place
_EVALUATED: dict[Any, Callable[[Op], Callable[..., Any]]] = {
    primitive("getitem"): lambda op: operator.itemgetter(to_numpy(op.keyword("index"), ())),
    primitive("reshape"): lambda op: operator.methodcaller("reshape", op.keyword("shape")),
    primitive("transpose"): lambda op: operator.methodcaller("transpose", op.keyword("axes")),
    primitive("sum"): lambda op: partial(np.add.reduce, **dict(op.static)),
    primitive("prod"): lambda op: partial(np.multiply.reduce, **dict(op.static)),
    primitive("max"): lambda op: partial(np.maximum.reduce, **dict(op.static)),
    primitive("min"): lambda op: partial(np.minimum.reduce, **dict(op.static)),
    primitive("matmul"): lambda op: np.matmul,
    primitive("where"): lambda op: np.where,
    primitive("concatenate"): lambda op: lambda *values: _concatenate(values, op.keyword("axis")),
}
"""Of an op of arrays, a function that computes it as NumPy's own does, and calls no code that records."""
_OF_NUMBERS: dict[Any, Callable[[Op], Callable[..., Any]]] = {
    primitive("stack"): lambda op: lambda *values: _array(values),
}
"""The same of numbers."""


class _Known:
    """The op that calls of a kind become, and of which view of its first operand it is the result."""

    __slots__ = ("_compute", "notes", "op", "read")

    def __init__(self, op: Op, read: tuple[str, dict[str, Any]] | None, notes: bool, values: Sequence[Any]) -> None:
        self.op, self.read, self.notes = op, read, notes
        are_numbers = all(isinstance(each, (float, np.generic)) for each in values)
        made = (_OF_NUMBERS if are_numbers else _EVALUATED).get(op.primitive)
        if not are_numbers and type(values[0]) is not np.ndarray:
            made = None
        self._compute = None if made is None else made(op)

    def of(self, values: Sequence[Any]) -> Any:
        """The result for these values of the operands."""
        if self._compute is not None:
            return self._compute(*values)
        stack = innermost.stack
        stack.append(None)  # nothing in it is to be recorded
        try:
            return self.op.primitive.function(*values, **dict(self.op.static))
        finally:
            stack.pop()


_known: dict[tuple[Any, ...], _Known] = {}


def repeated(
    trace: Trace, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], usual: Callable[[], Any]
) -> Any:
    """What ``function(*args, **kwargs)`` records, by what a call of its kind became before; else as ``usual``."""
    key: list[Any] = [function]
    operands = None if trace.exact or trace.sizes is not None else _operands(trace, function, args, key)
    if operands is None or not (_are_literals(args[BY_KIND[function] :], key) and _are_literals(kwargs.values(), key)):
        return usual()
    key += kwargs
    kind = tuple(key)
    known = _known.get(kind)
    if known is None:
        return _observed(trace, kind, operands, usual)
    held, op = trace.values, known.op
    variables = tuple([trace.lift(each) for each in operands])
    result = known.of([held[variable] for variable in variables])
    found = trace.record(op.primitive, variables, op.static, result, 3)
    if known.read is not None:
        found = trace.plain(trace, found._variable, operands[0], known.read)
    if known.notes:
        by_layout(operands[0], found)
    return found


def _operands(trace: Trace, function: Any, args: Sequence[Any], key: list[Any]) -> Sequence[Any] | None:
    """The operands, with their kinds added to ``key``; None if one of them is of another kind than most."""
    operands = args[: BY_KIND[function]]
    if operands and type(operands[0]) in (list, tuple):
        operands = operands[0]
        key.append(len(operands))
    for each in operands:
        kind = type(each)
        key.append(kind)
        if kind is np.ndarray:
            value = each
        elif kind is trace.plain:
            if each._trace is not trace:
                return None
            value = trace.values[each._variable if each._base is None else each._current()]
            if type(value) is not np.ndarray:
                key.append(type(value))
                continue
        elif kind in _NUMBERS:
            continue
        else:
            return None
        key += value.dtype, value.shape, value.strides
    return operands


def _are_literals(values: Any, key: list[Any]) -> bool:
    """Whether all ``values`` are hashable and of the same type if equal; with types they are added to ``key``."""
    for each in values:
        kind = type(each)
        key.append(kind)
        if kind in _LITERALS:
            key.append(each)
        elif kind is slice:
            if not _are_literals((each.start, each.stop, each.step), key):
                return False
        elif kind is tuple or kind is list:
            key.append(len(each))
            if not _are_literals(each, key):
                return False
        else:
            return False
    return True


def _observed(trace: Trace, kind: tuple[Any, ...], operands: Sequence[Any], usual: Callable[[], Any]) -> Any:
    """What is recorded as ``usual``; if that is one op of the operands in their order, it is remembered."""
    builder = trace.builder
    ops, ordered = len(builder.ops), trace.ordered
    guards, noted = len(builder.guards), len(trace.reshaped)
    trace.ordered = None
    try:
        found = usual()
    finally:
        relies = trace.ordered is not None
        trace.ordered = ordered or trace.ordered
    if relies or not operands or not is_tracer(found):
        return found
    if len(builder.ops) != ops + 1 or len(builder.guards) != guards:
        return found
    op = builder.definition(found._variable)
    if op is None or op.result != builder.count:
        return found
    if any(type(each) is np.ndarray and each.dtype == object for each in operands):
        return found
    if op.operands != tuple(map(trace.lift, operands)):
        return found
    if found._base is None or (found._base is operands[0] and found._read == (op.name, dict(op.static))):
        values = [trace.values[each] for each in op.operands]
        notes = op.primitive is primitive("reshape") and long_axes(operands[0].shape) != long_axes(found.shape)
        known = _Known(op, found._read, notes, values)
        alike = _are_alike(known.of(values), trace.values[found._variable])
        if alike and (notes or len(trace.reshaped) == noted):
            if len(_known) >= _MOST:
                _known.clear()
            _known[kind] = known
    return found


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two values are of the same class, and arrays lie in memory in the same way."""
    return type(one) is type(other) and (type(one) is not np.ndarray or one.strides == other.strides)
