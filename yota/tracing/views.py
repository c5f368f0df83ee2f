"""Reading and writing parts of traced arrays; views stay views, though the tape itself never writes."""

from __future__ import annotations

import gc
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, to_numpy
from yota.tracing.current import current, innermost
from yota.tracing.indices import are_whole, normalise, places
from yota.tracing.memory import by_layout, laid_as, root_of
from yota.tracing.methods import cast, is_tracer, with_part

if TYPE_CHECKING:
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer

_GETITEM = primitive("getitem")
UNREAD = -1
"""The variable of a view that nobody has read since it was written."""


def _is_truth(index: Any) -> bool:
    """Whether an index is a single boolean."""
    if isinstance(index, (bool, np.bool_)):
        return True
    return isinstance(index, np.ndarray) and not index.ndim and index.dtype == np.bool_


def read(tracer: Tracer, index: Any) -> Any:
    """``tracer[index]``; a view where NumPy gives one."""
    inner: Trace | None = innermost.stack[-1]
    if inner is not None and inner is not tracer._trace:
        parts = index if isinstance(index, tuple) else (index,)
        if any(is_tracer(each) and each._trace is not tracer._trace for each in parts):
            tracer = inner.wrap(inner.lift(tracer), tracer._value())
    trace = tracer._trace
    if type(index) is int or (type(index) is tuple and are_whole(index)):
        is_whole = tracer._base is None and trace is inner and not trace.unnamed
        variable = tracer._variable if is_whole else trace.lift(tracer)
        value = trace.values[variable]
        found, shape = value[index], value.shape
        entries: tuple[Any, ...] = (index,) if type(index) is int and index >= 0 else places(index, shape)
        if type(found) is not np.ndarray:
            return trace.record(_GETITEM, (variable,), (("index", entries),), found, 3)
        entries = (*entries, *[Slice(0, extent) for extent in shape[len(entries) :]])
        result = trace.record(_GETITEM, (variable,), (("index", entries),), found)
        return _viewed(tracer, result, {"index": entries})
    if isinstance(index, str):
        raise trace.refuse("structured arrays are not supported.", "Use a dataclass or a dict of arrays.")
    if _is_truth(index):
        # One more axis, of one element or of none.
        whole: Any = np.reshape(tracer, (1, *tracer.shape))
        return whole[: int(bool(index))].copy("K")
    entries, arrays = normalise(trace, index, tracer.shape)
    if arrays:
        return trace.apply(primitive("getitem"), (tracer, *arrays), {"index": entries})
    shape = _whole(entries, tracer.shape)
    result = view(tracer, "getitem", {"index": entries}) if shape is None else view(tracer, "reshape", {"shape": shape})
    if _copies(tracer, index):
        return detached(result)
    value = trace.values[result._variable]
    if isinstance(value, np.ndarray) and value.ndim:
        return result
    # x[2] is a NumPy scalar, x[2, ...] a 0-d array that can be written to.
    if type(Ellipsis) in map(type, index if isinstance(index, tuple) else (index,)):
        return result if result._base is not None or not tracer.ndim else _element(tracer, entries)
    return trace.wrap(result._variable, value[()]) if isinstance(value, np.ndarray) else result


def _is_from_before(tracer: Tracer, trace: Trace) -> bool:
    """Whether an array was there before the branch that is recorded, and is not the branch's own to write."""
    while tracer._base is not None:
        tracer = tracer._base
    own = trace.first_run.own if trace.first_run is not None else ()
    return tracer._variable < trace.branch and id(tracer) not in own


def _refuse_outer(tracer: Tracer) -> None:
    """Refuse to write from a loop's body, or a branch of one, into an array from outside of it."""
    inner = current()
    if inner is tracer._trace and inner.branch and _is_from_before(tracer, inner):
        raise inner.refuse("a branch writes into an array from outside of it.", "Write the choice with np.where.")
    if inner is not None and inner is not tracer._trace and inner.trips:
        raise inner.refuse(
            "a trip of a loop writes into an array from outside of it, which would count once.",
            "Carry the array: copy it, write into the copy, and return that.",
        )


def _element(tracer: Tracer, place: Index) -> Tracer:
    """A view without axes of the element at ``place``."""
    *front, last = place
    assert isinstance(last, int)
    row = view(tracer, "getitem", {"index": (*front, Slice(last, last + 1))})
    return view(row, "reshape", {"shape": ()})


def _copies(tracer: Tracer, index: Any) -> bool:
    """Whether NumPy copies what an index without arrays of several elements selects: 0-d arrays are arrays too."""
    if isinstance(tracer._read, Look) and tracer._read.items:
        return True
    entries = index if isinstance(index, tuple) else (index,)
    return any(isinstance(entry, np.ndarray) and not entry.ndim for entry in entries)


def _whole(index: Index, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The result's shape, if the index selects every element in order: ``x[:, None]`` is a reshape."""
    extents = iter(shape)
    result: list[int] = []
    for entry in index:
        extent = 1 if entry is NEWAXIS else next(extents)
        if entry is not NEWAXIS and not (isinstance(entry, Slice) and entry.is_whole(extent)):
            return None
        result.append(extent)
    return tuple(result)


def view(tracer: Tracer, name: str, static: dict[str, Any]) -> Tracer:
    """Apply a primitive that may give a view of its operand, as NumPy decides on the concrete value."""
    result: Tracer = tracer._trace.apply(primitive(name), (tracer,), static)
    result = _viewed(tracer, result, static, name)
    if name == "reshape" and long_axes(tracer.shape) != long_axes(static["shape"]):
        by_layout(tracer, result)
    return result


def _viewed(tracer: Tracer, result: Tracer, static: dict[str, Any], name: str = "getitem") -> Tracer:
    """``result`` as a view of ``tracer``, if its value is one."""
    values = tracer._trace.values
    here, there = values[result._variable], values[tracer._current()]
    if isinstance(here, np.ndarray) and isinstance(there, np.ndarray) and np.may_share_memory(here, there):
        return type(tracer)(tracer._trace, result._variable, tracer, (name, static))
    return result


def viewing(tracer: Tracer, found: Tracer, function: Callable[[Any], Any]) -> Tracer:
    """``found``, which has the elements of ``tracer``, as a view or a copy, as ``function`` gives of the value."""
    value = tracer._value()
    if isinstance(value, np.ndarray):
        if found._base is not None and not np.may_share_memory(function(value), value):
            found = detached(found)
        by_layout(tracer, found)
    return found


def detached(tracer: Tracer) -> Any:
    """The elements of ``tracer`` as an array of its own, which no write into another one reaches."""
    return tracer.copy("K")


def long_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without the axes that can come and go in a view."""
    return tuple(extent for extent in shape if extent != 1)


@dataclass(frozen=True, slots=True)
class Look:
    """A view that no single primitive gives.

    write: records the array after the view was overwritten; None for a view that cannot be written to.
    items: whether an index gives copies of its elements.
    """

    read: Callable[[Tracer], Tracer]
    write: Callable[[Tracer, Tracer], Tracer] | None = None
    items: bool = False


def shaped_as(base: Tracer, shape: tuple[int, ...]) -> Tracer:
    """``base`` as its views know it, which its attribute ``shape`` may have changed since."""
    return base if base.shape == shape else shaped(base, shape)


def look(base: Tracer, read: Any) -> Any:
    """What a view of ``base`` holds now; ``read`` is a `Look`, or a primitive's name with its keywords."""
    if isinstance(read, Look):
        return read.read(base)
    name, static = read
    return base._trace.apply(primitive(name), (base,), static)


def derived(tracer: Tracer, read: Look) -> Tracer:
    """A view of ``tracer``: it follows later writes into that."""
    return type(tracer)(tracer._trace, read.read(tracer)._current(), tracer, read)


def flat(tracer: Tracer) -> Tracer:
    """The elements in C order, wherever they lie; writes go through, and an index gives a copy."""
    shape = tracer.shape
    return derived(
        tracer, Look(lambda base: shaped(base, (base.size,)), lambda base, value: shaped(value, shape), items=True)
    )


def refuse_own(tracer: Tracer, value: Any) -> None:
    """Refuse elements of an array that are written by its ``flat``: NumPy reads some after it has overwritten them."""
    is_flat = type(tracer._read) is Look and tracer._read.items
    if is_flat and is_tracer(value) and value.ndim and root_of(value) is root_of(tracer):
        raise tracer._trace.refuse(
            "elements of an array are written into its .flat, which NumPy does one by one.", "Write their .copy()."
        )


def write(tracer: Tracer, index: Any, value: Any) -> None:
    """``tracer[index] = value``, recorded as a new array that takes the old one's place."""
    if value is None and tracer.dtype.kind in "fc":
        value = np.nan  # as NumPy takes it
    trace = tracer._trace
    trace.check(tracer._variable)
    _refuse_outer(tracer)
    if not isinstance(tracer._value(), np.ndarray):
        raise TypeError(f"'{type(tracer._value()).__name__}' object does not support item assignment")
    if _is_truth(index):
        if not index:
            return
        index = Ellipsis
    if isinstance(index, tuple) and any(map(_is_truth, index)):
        if not all(bool(each) for each in index if _is_truth(each)):
            return
        index = tuple(each for each in index if not _is_truth(each))
    if _is_there(tracer, index, value):
        return
    refuse_own(tracer, value)
    value = _castable(trace, tracer, value)
    mask = None if trace.exact else _mask(tracer, index)
    if mask is not None and not np.ndim(value):
        overwrite(tracer, trace.apply(primitive("where"), (mask, _cast(trace, tracer, value), tracer)))
        return
    entries, arrays = normalise(trace, index, tracer.shape)
    value = _without_leading(value, entries, arrays)
    if arrays and trace.exact:
        result = trace.apply(primitive("setitem"), (tracer, value, *arrays), {"index": entries})
    elif arrays and not any(np.ndim(each) for each in arrays):
        result = assigned(trace, tracer, value, entries, arrays)
    elif arrays:
        result = _scattered(tracer, entries, arrays, value)
    else:
        result = trace.apply(primitive("setitem"), (tracer, value), {"index": entries})
    _assign(tracer, result._variable)
    trace.written = tracer if tracer._base is None and not arrays else None


def resize(tracer: Tracer, extents: Any, refcheck: bool) -> None:
    """Give an array other extents in place: its elements in their order, and zeros after them."""
    _refuse_outer(tracer)
    value = tracer._value()
    is_shared = any(is_tracer(each) and each._base is tracer for each in gc.get_referrers(tracer))
    if tracer._base is not None or is_shared or (refcheck and id(tracer) in tracer._trace.arguments):
        raise ValueError("cannot resize an array that references or is referenced\nby another array in this way.")
    if not value.flags.c_contiguous or not isinstance(value, np.ndarray):
        raise tracer._trace.refuse("resizing this array in place is not supported.", "Use np.resize.")
    if extents is None:
        return
    shape = tuple(map(operator.index, extents)) if isinstance(extents, (tuple, list)) else (operator.index(extents),)
    count = math.prod(shape)
    elements = shaped(tracer, (tracer.size,))
    more = np.zeros(max(count - tracer.size, 0), tracer.dtype)
    longer: Any = np.concatenate([elements[:count], more])
    tracer._variable = shaped(longer, shape)._variable
    tracer._trace.written = None


def _without_leading(value: Any, entries: Index, arrays: list[Any]) -> Any:
    """``value`` without the leading axes of one element that NumPy leaves out when it assigns."""
    ndim = sum(isinstance(entry, Slice) or entry is NEWAXIS for entry in entries)
    ndim += max((np.ndim(each) for each in arrays), default=0)
    extra = (value.ndim if is_tracer(value) else np.ndim(value)) - ndim
    if extra <= 0 or any(extent != 1 for extent in np.shape(value)[:extra]):
        return value
    return np.reshape(value, np.shape(value)[extra:])


def _is_there(tracer: Tracer, index: Any, value: Any) -> bool:
    """Whether ``value`` is the view ``tracer[index]``, as Python assigns it once more after ``tracer[index] += a``."""
    if not is_tracer(value) or value._base is not tracer or value._base_variable != tracer._current():
        return False
    entries, arrays = normalise(tracer._trace, index, tracer.shape)
    return not arrays and bool(value._read == ("getitem", {"index": entries}))


def _mask(tracer: Tracer, index: Any) -> Any:
    """A boolean array that is the whole index, with an axis for each of the tracer's."""
    if getattr(index, "dtype", None) != np.bool_ or not index.ndim:
        return None
    if index.shape != tracer.shape[: index.ndim]:
        raise IndexError(f"boolean index of shape {index.shape} did not match indexed array of shape {tracer.shape}")
    return np.reshape(index, index.shape + (1,) * (tracer.ndim - index.ndim))


def _cast(trace: Trace, tracer: Tracer, value: Any) -> Any:
    if trace.builder.types[trace.lift(value)].dtype == tracer.dtype:
        return value
    return cast(trace, value, tracer.dtype)


def _castable(trace: Trace, tracer: Tracer, value: Any) -> Any:
    kind = trace.builder.types[trace.lift(value)].dtype.kind
    if kind == "c" and tracer.dtype.kind != "c":
        raise trace.refuse("a complex value is written into a real array.", "Make the array complex, or take .real.")
    if kind == "f" and tracer.dtype.kind in "iub" and not trace.is_constant(trace.lift(value)):
        raise trace.refuse(
            f"a traced value is written into an array of dtype {tracer.dtype}, which would lose its derivative.",
            "Make the array floating, for example with np.zeros(n).",
        )
    return value


def _scattered(tracer: Tracer, entries: Index, arrays: list[Any], value: Any) -> Any:
    """The array after an assignment at integer arrays; where positions repeat, the last value stays."""
    trace = tracer._trace
    variables = [trace.lift(array) for array in arrays]
    whole = np.arange(np.prod(tracer.shape, dtype=np.intp)).reshape(tracer.shape)
    known: Any = whole[to_numpy(entries, [trace.values[variable] for variable in variables])]
    # Where each position occurs last: np.unique finds first occurrences, here of the reversed positions.
    _, last = np.unique(known.ravel()[::-1], return_index=True)
    kept = np.sort(known.size - 1 - last)
    if not all(trace.is_constant(variable) for variable in variables):
        targets = np.ravel(trace.apply(primitive("getitem"), (whole, *arrays), {"index": entries}))
        if len(kept) < known.size:
            return _last_staying(tracer, targets, np.reshape(np.broadcast_to(value, known.shape), (-1,)))
        ordered = np.sort(targets)
        bool(np.all(ordered[1:] != ordered[:-1]))  # a guard that traced positions are all different
    if len(kept) == known.size:
        return assigned(trace, tracer, value, entries, arrays)
    pieces = np.reshape(np.broadcast_to(value, known.shape), (-1,))[kept]
    flat = shaped(tracer, (whole.size,))
    return shaped(assigned(trace, flat, pieces, (GATHER,), [known.ravel()[kept]]), tracer.shape)


def shaped(tracer: Tracer, shape: tuple[int, ...]) -> Any:
    """The elements in another shape: no view, whose order in memory would matter."""
    return tracer._trace.apply(primitive("reshape"), (tracer,), {"shape": shape})


def _last_staying(tracer: Tracer, targets: Any, value: Any) -> Any:
    """A flat ``value`` assigned at traced positions, of which some may be the same: the last of those stays."""
    trace = tracer._trace
    order = np.argsort(targets, kind="stable")
    places = targets[order]
    zero = np.zeros((), tracer.dtype)
    ordered = _cast(trace, tracer, value)[order]
    pieces = np.concatenate([np.where(places[1:] != places[:-1], ordered[:-1], zero), ordered[-1:]])
    flat = shaped(tracer, (int(np.prod(tracer.shape)),))
    cleared = assigned(trace, flat, zero, (GATHER,), [targets])
    static = {"shape": flat.shape, "indices": ((GATHER,),)}
    return shaped(cleared + trace.apply(primitive("scatter"), (pieces, places), static), tracer.shape)


def assigned(trace: Trace, tracer: Tracer, value: Any, entries: Index, arrays: list[Any]) -> Any:
    """The array after ``value`` took the places that ``arrays`` name."""
    return trace.apply(primitive("setitem"), (tracer, value, *arrays), {"index": entries})


def overwrite(tracer: Tracer, value: Any) -> None:
    """``tracer[...] = value`` with NumPy's casting rule for in-place operations."""
    _refuse_outer(tracer)
    trace = tracer._trace
    variable = trace.lift(value)
    type_ = trace.builder.types[variable]
    if not np.can_cast(type_.dtype, tracer.dtype, "same_kind"):
        raise TypeError(f"cannot cast the result from {type_.dtype} to {tracer.dtype} with casting rule 'same_kind'")
    if type_.shape != tracer.shape:
        if _is_broadcastable(type_.shape, tracer.shape):
            overwrite(tracer, np.broadcast_to(value, tracer.shape))
            return
        raise ValueError(
            f"non-broadcastable output operand with shape {tracer.shape} for result of shape {type_.shape}"
        )
    if trace.exact:
        # The array keeps its own order in memory.
        whole = tuple(Slice(0, extent) for extent in tracer.shape)
        _assign(tracer, trace.apply(primitive("setitem"), (tracer, value), {"index": whole})._variable)
        return
    if type_.dtype != tracer.dtype or not isinstance(trace.values[variable], np.ndarray):
        variable = trace.apply(primitive("astype"), (value,), {"dtype": tracer.dtype})._variable
    strides = tracer._value().strides
    if trace.values[variable].strides != strides:
        if tracer._base is None:
            variable = trace.rearranged(variable, laid_as(trace.values[variable], strides))._variable
        else:
            _assign(tracer, variable, reads=True)
            return
    _assign(tracer, variable)


def _is_broadcastable(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(one in (1, other) for one, other in pairs)


def _assign(tracer: Tracer, variable: int, *, reads: bool = False) -> None:
    """Let ``tracer`` hold ``variable`` from now on; views read anew what others may hold too (``reads``)."""
    base, trace = tracer._base, tracer._trace
    strides, value = tracer._value().strides, trace.values[variable]
    if value.strides != strides and not reads:
        trace.values[variable] = laid_as(value, strides)
    if base is None:
        if id(tracer) in trace.reshaped:
            trace.rely_on_order()
        tracer._variable = variable
        return
    seen = shaped_as(base, tracer._base_shape)
    written = _with_view(tracer, seen, type(tracer)(trace, variable))
    _assign(base, shaped(written, base.shape)._variable if seen is not base else written._variable)
    tracer._base_variable = base._current()
    tracer._variable = look(base, tracer._read)._variable if trace.exact else UNREAD if reads else variable


def _with_view(tracer: Tracer, base: Tracer, written: Tracer) -> Any:
    """``base`` after its view ``tracer`` was overwritten by ``written``."""
    trace = tracer._trace
    if isinstance(tracer._read, Look):
        if tracer._read.write is None:
            raise trace.refuse("writing through this view is not supported.", "Write into the array itself.")
        return tracer._read.write(base, written)
    name, static = tracer._read
    if name == "getitem":
        return trace.apply(primitive("setitem"), (base, written), static)
    if name == "reshape":
        return trace.apply(primitive("reshape"), (written,), {"shape": base.shape})
    if name == "transpose":
        inverse = tuple(int(axis) for axis in np.argsort(static["axes"]))
        return trace.apply(primitive("transpose"), (written,), {"axes": inverse})
    if name in ("real", "imag"):
        return with_part(base, name, written)
    raise trace.refuse(f"writing through the view that {name} gives is not supported.", "Write into the array itself.")
