"""Views by memory: other strides, and real numbers as complex ones; recorded by the order in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yota.ir.indexing import GATHER
from yota.tracing.implementations import records
from yota.tracing.memory import laid_as, root_of
from yota.tracing.methods import is_tracer, turned
from yota.tracing.untyped import np
from yota.tracing.views import Look, assigned, derived, shaped

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


@records("numpy.lib._stride_tricks_impl", "as_strided")
@records("numpy.lib.stride_tricks", "as_strided")
def _as_strided(
    trace: Trace, x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True, **_: Any
) -> Any:
    if not is_tracer(x):
        raise trace.refuse(
            "as_strided takes extents and strides that are not traced.", "Compute them by plain numbers."
        )
    x = np.asarray(x)
    shape = x.shape if shape is None else tuple(map(int, np.atleast_1d(shape)))
    strides = x.strides if strides is None else tuple(map(int, np.atleast_1d(strides)))
    trace.rely_on_order()
    owner, positions = _positions(trace, x, shape, strides)
    extents = owner.shape
    writes = writeable and len(np.unique(positions)) == positions.size

    def read(base: Any) -> Any:
        return _laid(np.reshape(shaped(base, (base.size,))[positions.ravel()], shape), strides)

    def write(base: Any, value: Any) -> Any:
        flat = shaped(base, (base.size,))
        return shaped(assigned(trace, flat, np.reshape(value, (-1,)), (GATHER,), [positions.ravel()]), extents)

    return derived(owner, Look(read, write if writes else None))


def _positions(trace: Trace, x: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Any, Any]:
    """An array, and which of its elements in C order lie where ``strides`` lead from the first one of ``x``."""
    offsets = _offsets(shape, strides)
    for owner in (root_of(x), x):
        value, here = owner._value(), x._value()
        if value.dtype != here.dtype or not np.may_share_memory(value, here):
            continue
        found = offsets + (_address(here) - _address(value))
        known = _offsets(value.shape, value.strides).ravel()
        order = np.argsort(known, kind="stable")
        places = np.minimum(np.searchsorted(known[order], found), known.size - 1)
        if not found.size or (known.size and np.array_equal(known[order][places], found)):
            return owner, order[places]
    raise trace.refuse(
        "as_strided reaches outside of a traced array, or between its elements.", "Index the array in the place of it."
    )


def _offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Bytes from the first element to each element."""
    found = np.zeros(shape, np.int64)
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        found += (np.arange(extent) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return found


def _address(value: Any) -> int:
    return int(value.__array_interface__["data"][0])


def as_dtype(tracer: Any, dtype: Any) -> Any:
    """``tracer.view(dtype)``: complex numbers as pairs of real ones, or pairs as complex numbers."""
    trace, extents, kinds = tracer._trace, tracer.shape, tracer.dtype.kind + dtype.kind
    plain = tracer._value().view(dtype)  # or NumPy's error
    if kinds not in ("cf", "fc") or 2 * min(tracer.dtype.itemsize, dtype.itemsize) != max(
        tracer.dtype.itemsize, dtype.itemsize
    ):
        raise trace.refuse(
            f"a view of traced values of dtype {tracer.dtype} as {dtype} shows their bits, which have no derivative.",
            "Use astype, or do it outside of the function.",
        )
    trace.rely_on_order()
    read, write = (_as_pairs, _as_complex) if kinds == "cf" else (_as_complex, _as_pairs)

    own = tracer._value().strides
    return derived(
        tracer,
        Look(
            lambda base: _laid(read(base, plain.shape), plain.strides),
            lambda _, value: _laid(write(value, extents), own),
        ),
    )


def _laid(found: Any, strides: tuple[int, ...]) -> Any:
    """``found`` as it lies in memory by ``strides``: what reshapes it later gives views where NumPy's does."""
    value = found._value()
    if value.strides == strides:
        return found
    value = laid_as(value, strides)
    return found._trace.rearranged(found._current(), value)


def _as_pairs(base: Any, shape: tuple[int, ...]) -> Any:
    return np.reshape(np.stack([np.real(base), np.imag(base)], axis=-1), shape)


def _as_complex(base: Any, shape: tuple[int, ...]) -> Any:
    pairs = np.reshape(base, (*shape, 2))
    return pairs[..., 0] + turned(pairs[..., 1], np.result_type(base.dtype, np.complex64))
