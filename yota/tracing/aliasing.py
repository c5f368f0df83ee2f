"""Which of NumPy's functions give copies of what they are given, and which give views: one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.tracing.captures import frozen
from yota.tracing.current import entered
from yota.tracing.memory import laid_as
from yota.tracing.methods import is_tracer, transformed
from yota.tracing.views import detached

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_VIEWS = """
    atleast_1d atleast_2d atleast_3d array_split broadcast_arrays broadcast_to diagonal dsplit expand_dims flip fliplr
    flipud hsplit matrix_transpose moveaxis permute_dims real rollaxis rot90 split squeeze swapaxes transpose
    trim_zeros unstack vsplit linalg.diagonal linalg.matrix_transpose lib.stride_tricks.as_strided
    lib.stride_tricks.sliding_window_view
"""
_DEPENDS = """
    apply_over_axes array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray asmatrix astype bmat
    diag diff einsum from_dlpack frombuffer histogram histogram2d histogram_bin_edges histogramdd imag ix_ meshgrid
    nan_to_num polyder polyint ravel real_if_close require reshape linalg.matrix_power
"""
_WRITERS = "copyto fill_diagonal place put put_along_axis putmask"
_QUESTIONS = """
    allclose array_equal array_equiv broadcast_shapes can_cast common_type einsum_path iscomplexobj isfortran isrealobj
    isscalar iterable may_share_memory min_scalar_type ndim result_type shape shares_memory size
"""

ALIASING: dict[str, str] = {
    name: kind
    for kind, names in (("view", _VIEWS), ("depends", _DEPENDS), ("write", _WRITERS), ("question", _QUESTIONS))
    for name in names.split()
}
"""By name in NumPy's namespace, what the arrays that a function gives share with those that it is given.

"view": their memory, always. "depends": their memory, as dtypes, keywords or the order in memory have it. "write": it
writes into one of them. "question": it gives no array. All others, ufuncs and their methods give copies.
"""


def functions(*kinds: str) -> frozenset[Any]:
    """The functions of the table that are of ``kinds``, as far as this version of NumPy has them."""
    found: set[Any] = set()
    for name, kind in ALIASING.items():
        if kind in kinds:
            owner: Any = np
            for part in name.split("."):
                owner = getattr(owner, part, None)
            found.add(owner)
    return frozenset(found - {None})


_SHARING = functions("view", "depends")


def settled(
    trace: Trace, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
) -> Any:
    """What ``function(*args, **kwargs)`` was recorded as, with views and orders in memory as NumPy has them."""
    if isinstance(result, (tuple, list)):
        several = list(result)
    elif not is_tracer(result) or _is_settled(function, (*args, *kwargs.values()), result):
        return result
    else:
        several = [result]
    given = [*_tracers((args, {name: value for name, value in kwargs.items() if name != "out"}))]
    if function not in _SHARING:
        out = kwargs.get("out")
        several = [detached(each) if _is_shared(each, given) and each is not out else each for each in several]
    apart = [_has_order(each) and not _is_shared(each, given) for each in several]
    in_order = all(
        not is_tracer(each) or not each.ndim or each._value().flags.c_contiguous for each in (*given, *several)
    )
    if any(apart) and "out" not in kwargs and not (in_order and not kwargs.get("optimize")):
        several = _as_laid_out(trace, function, args, kwargs, several, apart)
    if is_tracer(result):
        return several[0]
    return type(result)(*several) if hasattr(result, "_fields") else type(result)(several)


def _is_settled(function: Any, given: Sequence[Any], result: Any) -> bool:
    """Whether a result is as NumPy has it for sure: a view that may be one, of one axis, of an op for the very call."""
    if result._base is not None or any(each is result for each in given):
        return function in _SHARING
    if result.ndim < 2:
        return not any(isinstance(each, (tuple, list)) for each in given)
    op = result._trace.builder.definition(result._variable)
    # Of einsum, the op goes about it otherwise than the call.
    return op is not None and op.name == function.__name__ != "einsum"


def _tracers(value: Any) -> Iterator[Any]:
    if is_tracer(value):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tracers(each)


def _is_shared(result: Any, given: Sequence[Any]) -> bool:
    return is_tracer(result) and (result._base is not None or any(result is each for each in given))


def _has_order(value: Any) -> bool:
    """Whether several axes of a traced value have several elements."""
    if not is_tracer(value):
        return False
    shape = value.shape
    return len(shape) > 1 and value.size > 1 and value.size not in shape


def _as_laid_out(
    trace: Trace,
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Sequence[Any],
    apart: Sequence[bool],
) -> list[Any]:
    """``results``, as far as they are ``apart``, in memory as those of the plain call."""
    if any(callable(each) and not isinstance(each, type) for each in (*args, *kwargs.values())):
        return list(results)
    try:
        plain = plainly(trace, function, args, kwargs)
    except Exception:  # noqa: BLE001  (what cannot be called again stays as it was recorded)
        return list(results)
    found = []
    for each, own, other in zip(results, apart, plain if isinstance(plain, (tuple, list)) else [plain], strict=False):
        if own and other.strides != each._value().strides:
            value = laid_as(each._value(), other.strides)
            each = trace.rearranged(each._current(), value)
        found.append(each)
    return found


def plainly(trace: Trace, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What NumPy gives for the concrete values, or its error."""

    def plain(value: Any) -> Any:
        return frozen(trace.values[trace.lift(value)]) if is_tracer(value) else value

    with entered(None), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        args, kwargs = transformed((tuple(args), dict(kwargs)), plain)
        return function(*args, **kwargs)
