"""NumPy's two dispatch protocols: which primitive, recorded function or refusal a call becomes."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import MissingRuleError, TracingError
from yota.ir.location import where
from yota.rules.language.rule_text import template
from yota.tracing.aliasing import functions, settled
from yota.tracing.creation import fresh
from yota.tracing.cupy_names import lifted
from yota.tracing.exact import path_of, record_call, write_call
from yota.tracing.implementations import CHECKED, IMPLEMENTATIONS, OF_COMPLEX
from yota.tracing.intercept import bind
from yota.tracing.library_calls import LibraryCall, public_name
from yota.tracing.memory import arranged
from yota.tracing.methods import is_tracer, transformed, unboxed
from yota.tracing.source_lines import here, users
from yota.tracing.views import overwrite

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_SHARING = functions("view", "depends")
_WRITING = functions("write")
_QUANTILES = {np.quantile, np.percentile, np.nanquantile, np.nanpercentile}


def call_function(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``function(*args, **kwargs)`` records."""
    if "cupy" in sys.modules:
        args, kwargs = lifted(trace, (args, kwargs))
    kwargs = {name: value for name, value in kwargs.items() if value is not np._NoValue}
    implementation = IMPLEMENTATIONS.get(function)
    args, kwargs = _out_by_name(function, args, kwargs)
    if function in _QUANTILES and len(args) > 1 and is_tracer(args[1]):
        # They index the array by what follows from the probabilities.
        args = (trace.traced(args[0]), *args[1:])
    if function in _WRITING and not any(is_tracer(each) for each in (*args[:1], *map(kwargs.get, ("a", "arr", "dst")))):
        raise trace.refuse(
            f"np.{function.__name__} would write a traced value into a plain array, where its derivative is lost.",
            "Make the array inside the function with np.zeros or .copy().",
        )
    if trace.exact:
        found = _as_made(trace, function, args, kwargs)
        if found is not NotImplemented:
            return found
    known = trace.registry.find(function)
    if implementation is None and known is not None:
        return _with_out(trace, kwargs, lambda rest: bind(trace, known, args, rest))
    try:
        if implementation is None:
            return _from_source(trace, function, args, kwargs)
        if function in CHECKED:
            _on_plain_values(trace, function, args, kwargs)
        return _with_out(
            trace, kwargs, lambda rest: settled(trace, function, args, rest, implementation(trace, *args, **rest))
        )
    except (TracingError, AttributeError, TypeError, ValueError, ArithmeticError, LookupError) as fault:
        if isinstance(fault, MissingRuleError) or (isinstance(fault, TracingError) and implementation is not None):
            raise
        # An error that NumPy raises on plain values too is the user's own.
        _on_plain_values(trace, function, args, kwargs)
        if implementation is not None:
            raise
        raise missing(trace, function) from fault


def _from_source(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """NumPy's own Python code is traced through, as any other would be."""
    if function not in _SHARING and not trace.varies((args, list(kwargs.values()))):
        return _constant(trace, _on_plain_values(trace, function, args, kwargs))
    plain = getattr(function, "_implementation", None)
    if plain is None:
        raise missing(trace, function)
    trace.hold()
    return settled(trace, function, args, kwargs, plain(*args, **kwargs))


def _on_plain_values(trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*concrete(trace, args), **concrete(trace, kwargs))


def _as_made(
    trace: Trace, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], path: str | None = None
) -> Any:
    """The call as it is, with its result in the place of ``out=``; NotImplemented if it must be taken apart."""
    rest = {name: value for name, value in kwargs.items() if name != "out"}
    found = record_call(trace, function, args, rest, path)
    return found if found is NotImplemented else _with_out(trace, kwargs, lambda _: found)


def _constant(trace: Trace, result: Any) -> Any:
    """What a function gave on constants, as constants that can be written to."""
    return transformed(result, lambda value: fresh(trace, value))


def concrete(trace: Trace, value: Any) -> Any:
    """Arguments with the concrete value, copied, in the place of each tracer."""
    return transformed(value, lambda each: np.copy(trace.values[trace.lift(each)]) if is_tracer(each) else each)


_OUT_OF_COMPILED: dict[Any, tuple[int, tuple[str, ...]]] = {np.dot: (2, ("out",)), np.concatenate: (2, ("out",))}
"""The same of functions of which NumPy 2.0 does not say what they take."""


@functools.cache
def _after_out(function: Any) -> tuple[int, tuple[str, ...]]:
    """Position of ``out`` among a function's parameters, and the names of those that follow it."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return _OUT_OF_COMPILED.get(function, (0, ()))
    names = tuple(parameters)
    by_position = "out" in names and parameters["out"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return (names.index("out"), names[names.index("out") :]) if by_position else (0, ())


def _out_by_name(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments from ``out`` on as keywords, so that recorded forms need not know of it."""
    position, names = _after_out(function)
    if not names or len(args) <= position:
        return args, kwargs
    given = {name: value for name, value in zip(names, args[position:], strict=False) if value is not np._NoValue}
    return args[:position], {**given, **kwargs}


def call_ufunc(trace: Trace, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``ufunc.method(*inputs, **kwargs)`` records."""
    if "cupy" in sys.modules:
        inputs = lifted(trace, inputs)
    # On scalars the operator takes the power of the C library, the function that of NumPy's loops.
    if trace.exact and (
        method != "__call__" or ufunc in IMPLEMENTATIONS or (ufunc is np.power and not any(map(np.ndim, inputs)))
    ):
        found = _ufunc_as_made(trace, ufunc, method, inputs, kwargs)
        if found is not NotImplemented:
            return found
    if method != "__call__":
        implementation = IMPLEMENTATIONS.get((ufunc, method)) or IMPLEMENTATIONS.get(method)
        if implementation is not None:
            plain = getattr(ufunc, method)

            def compute(rest: dict[str, Any]) -> Any:
                found = implementation(trace, ufunc, *inputs, **rest)
                return _numbers(settled(trace, plain, inputs, rest, found))

            return _with_out(trace, kwargs, compute)
        raise trace.refuse(
            f"np.{ufunc.__name__}.{method} is not supported on traced values.",
            "Write it with np.sum, np.prod or a loop.",
        )
    if ufunc in IMPLEMENTATIONS:
        return _with_out(trace, kwargs, lambda rest: _numbers(IMPLEMENTATIONS[ufunc](trace, *inputs, **rest)))
    known = trace.registry.find(ufunc)
    if known is None:
        if not trace.varies((inputs, list(kwargs.values()))):
            return _constant(trace, _on_plain_values(trace, ufunc, inputs, kwargs))
        raise missing(trace, ufunc)
    if not kwargs and ufunc not in OF_COMPLEX:
        if not trace.exact:
            trace.direct[ufunc] = known
        return trace.apply(known, inputs, depth=4)
    return _elementwise(trace, ufunc, known, inputs, kwargs)


def _numbers(result: Any) -> Any:
    """Arrays without axes as numbers, which ufuncs give."""
    return transformed(result, lambda each: unboxed(each) if is_tracer(each) else each)


def _ufunc_as_made(trace: Trace, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    path = path_of(ufunc)
    if path is None or "where" in kwargs:
        return NotImplemented
    if method == "__call__":
        return _as_made(trace, ufunc, inputs, kwargs, path)
    if method != "at":
        return _as_made(trace, None, inputs, kwargs, f"{path}.{method}")
    if not is_tracer(inputs[0]):
        return NotImplemented
    found = write_call(trace, f"{path}.at", inputs[0], inputs[1:])
    if found is NotImplemented:
        return found
    overwrite(inputs[0], found)
    return None


def _elementwise(trace: Trace, ufunc: np.ufunc, known: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    kwargs.pop("subok", None)
    casting: Any = kwargs.pop("casting", "same_kind")
    order: Any = kwargs.pop("order", "K")
    dtype: Any = kwargs.pop("dtype", None)
    where = kwargs.pop("where", True)
    if dtype is not None:
        # NumPy's own code passes classes such as np.dtypes.Float64DType.
        parametric: Any = dtype
        kind = parametric() if isinstance(dtype, type) and issubclass(dtype, np.dtype) else np.dtype(dtype)
        inputs = tuple(trace.traced(value) for value in inputs)
        signature = (*[None] * ufunc.nin, *[kind] * ufunc.nout)
        # NumPy chooses the loop, or raises the error.
        loop = ufunc.resolve_dtypes(
            (*[value.dtype for value in inputs], *[None] * ufunc.nout), signature=signature, casting=casting
        )
        inputs = tuple(value.astype(kind, copy=False) for value, kind in zip(inputs, loop, strict=False))

    def compute(rest: dict[str, Any]) -> Any:
        if rest:
            raise trace.refuse(f"np.{known.name} with {', '.join(rest)}= is not supported.", "Leave it out.")
        form = OF_COMPLEX.get(ufunc)
        if form is not None and any(trace.traced(each).dtype.kind == "c" for each in inputs):
            return form(trace, *inputs)
        return arranged(trace.apply(known, inputs), order, inputs)

    if where is True:
        return _with_out(trace, kwargs, compute)
    out = kwargs.get("out")
    if out is None:
        raise trace.refuse(
            f"np.{known.name} with where= and no out= leaves elements undefined.", "Use np.where(mask, a, b)."
        )
    target = out[0] if isinstance(out, tuple) else out
    inputs = _chosen(ufunc, inputs, where)
    return _with_out(trace, kwargs, lambda rest: np.where(where, compute(rest), target))


def _chosen(ufunc: np.ufunc, inputs: tuple[Any, ...], where: Any) -> tuple[Any, ...]:
    """Operands with a harmless number where nothing is computed, so that no slope is without bound there."""
    if ufunc in (np.add, np.subtract, np.negative, np.positive):
        return inputs
    harmless = 0.5 if np.all(np.isfinite(ufunc(*[0.5] * ufunc.nin))) else 1.5
    return tuple(
        np.where(where, value, harmless) if getattr(value, "ndim", 0) and value.dtype.kind in "fc" else value
        for value in inputs
    )


def _with_out(trace: Trace, kwargs: dict[str, Any], compute: Callable[[dict[str, Any]], Any]) -> Any:
    """Compute, and put the result in the place of ``out=``."""
    rest = dict(kwargs)
    out = rest.pop("out", None)
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return compute(rest)
    if not is_tracer(out):
        if isinstance(out, np.ndarray) and not trace.varies(found := compute(rest)):
            np.copyto(out, concrete(trace, found), casting="same_kind")
            return out
        trace.is_too_narrow = True
        raise trace.refuse(
            "a traced value would be written into a plain array (`a += traced` or `out=a`) and lose its derivative.",
            "Write `a = a + traced`, or make the array inside the function with np.zeros, np.empty or .copy().",
        )
    result = compute(rest)
    overwrite(out, result)
    return out


def missing(trace: Trace, function: Any) -> TracingError:
    """The error for a function without a rule, with the rule to paste; the user's code may catch it."""
    trace.refused = _missing(function)
    return trace.refused


def _missing(function: Any) -> MissingRuleError:
    name = getattr(function, "__name__", str(function))
    target = public_name(_bearer(function))
    place = where(here())
    elementwise = isinstance(function, np.ufunc) and function.signature is None
    if not name.isidentifier():
        return MissingRuleError(
            f"{place}{name} was made outside of the function that is traced and can have no rule. "
            "Make it inside with np.vectorize or np.frompyfunc, or write it by NumPy's functions."
        )
    if isinstance(function, np.ufunc):
        rule = template(name, target, function.nin, elementwise, function.nout)
        advice = f"Give it one with yota.diffrule, completing\n\n{rule}\n"
    else:
        advice = LibraryCall(target, function).advice()
    return MissingRuleError(f"{place}no rule is known for {target}. {advice}")


def _bearer(function: Any) -> Any:
    """The object of Numba's that calls a ufunc of several elements, which has no module itself; else ``function``."""
    running = (frame.f_locals.get("self") for frame in users(sys._getframe(1)))
    return next((each for each in running if getattr(each, "ufunc", None) is function), function)
