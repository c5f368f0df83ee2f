"""Recording calls as they were made, for values that must have NumPy's bits.

How results lie in memory decides the order of the sums over them, and each of NumPy's functions has its own way of
computing; what it amounts to is not enough. Such a recording is evaluated, never differentiated.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.calls import Form, Items, Place, call
from yota.ir.catalog import primitive
from yota.tracing.aliasing import functions
from yota.tracing.methods import is_tracer
from yota.tracing.views import Look, derived

if TYPE_CHECKING:
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer

_OTHER_VIEWS = {np.diagonal, np.diag, np.lib.stride_tricks.sliding_window_view}
_KEPT = (functions("view", "write", "question") | {np.reshape, np.ravel, np.imag}) - _OTHER_VIEWS
"""Functions whose usual recording moves, views or writes the very same elements."""
_ONE_OP = {np.sum, np.prod, np.max, np.min, np.any, np.all, np.where, np.concatenate, np.stack, np.cumsum, np.cumprod}
_AXES = frozenset({"axis", "keepdims"})
_LITERALS = (bool, int, float, complex, str, type(None), np.dtype)


class _Unfit(Exception):
    """An argument that a recorded call cannot hold."""


def record_call(
    trace: Trace, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], path: str | None = None
) -> Any:
    """What ``function(*args, **kwargs)`` gives, recorded as that call; NotImplemented where it must be taken apart."""
    # The usual recording may be one op that makes this very call.
    is_one_op = function in _ONE_OP and kwargs.keys() <= _AXES and (len(args) < 3 or function is np.where)
    if function in _KEPT or is_one_op:
        return NotImplemented
    path = path or path_of(function)
    if path is None:
        return NotImplemented
    operands: list[Any] = []
    try:
        arguments = tuple(_held(trace, value, operands) for value in args)
        keywords = tuple((name, _held(trace, value, operands)) for name, value in kwargs.items())
    except _Unfit:
        return NotImplemented
    form = Form(path, arguments, keywords)
    variables = tuple(trace.lift(operand) for operand in operands)
    values = [trace.values[variable] for variable in variables]
    result = call(*values, form=form)
    if isinstance(result, (tuple, list)):
        if not all(_is_fresh(part, values) for part in result):
            return NotImplemented
        parts = [
            trace.record(primitive("call"), variables, {"form": Form(path, arguments, keywords, number)}, part)
            for number, part in enumerate(result)
        ]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not _is_fresh(result, values):
        if function not in _OTHER_VIEWS:
            return NotImplemented
        static = {"form": replace(form, view=True)}
        return derived(operands[0], Look(lambda base: trace.apply(primitive("call"), (base,), static)))
    return trace.record(primitive("call"), variables, {"form": form}, result)


def write_call(trace: Trace, path: str, array: Tracer, args: Sequence[Any]) -> Any:
    """The array after a call that writes into it, which is its first argument; NotImplemented as in `record_call`."""
    operands: list[Any] = [array]
    try:
        rest = tuple(_held(trace, value, operands) for value in args)
    except _Unfit:
        return NotImplemented
    form = Form(path, (Place(0), *rest), writes=True)
    return trace.apply(primitive("call"), operands, {"form": form})


def _held(trace: Trace, value: Any, operands: list[Any]) -> Any:
    """An argument as a `Form` holds it; what is traced, and arrays, become operands."""
    if is_tracer(value) or isinstance(value, (np.ndarray, np.generic)) or id(value) in trace.conversions:
        if getattr(value, "dtype", np.dtype(float)).kind not in "biufc":
            raise _Unfit
        operands.append(value)
        return Place(len(operands) - 1)
    if type(value) in (list, tuple):
        return Items(type(value), tuple(_held(trace, item, operands) for item in value))
    if isinstance(value, type) and (issubclass(value, np.generic) or value in (bool, int, float, complex)):
        return np.dtype(value)
    if not isinstance(value, _LITERALS):
        raise _Unfit
    return value


def _is_fresh(result: Any, values: Sequence[Any]) -> bool:
    """Whether a result is a number or an array that shares no memory with what was given."""
    if isinstance(result, (float, complex, np.generic)):
        return result.dtype.kind in "biufc" if isinstance(result, np.generic) else True
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "biufc":
        return False
    return not any(isinstance(value, np.ndarray) and np.may_share_memory(result, value) for value in values)


def path_of(function: Any) -> str | None:
    """The dotted name under which a function of a library is found; None if there is none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", None)
    if isinstance(function, np.ufunc) and module is None:
        module = "numpy" if hasattr(np, function.__name__) else "scipy.special"
    if not module or not name or not name.isidentifier():
        return None
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
    while found is not None and found is not function:
        # While a trace runs, a recording function stands in the place of the original.
        found = getattr(found, "__wrapped__", None)
    return None if found is None else f"{module}.{name}"
