"""Products of arrays, recorded as matmul, einsum and elementwise multiplication."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.forms import Trace, implements, is_tracer, np, primitive, unboxed
from yota.tracing.memory import arranged
from yota.tracing.numpy.selection import diagonal


@implements(np.matmul, by_kind=2)
def _matmul(
    trace: Trace,
    a: Any,
    b: Any,
    *,
    axes: Any = None,
    dtype: Any = None,
    order: Any = "K",
    casting: str = "same_kind",
    subok: bool = True,
) -> Any:
    a, b = trace.traced(a), trace.traced(b)
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: an operand has 0 axes; use * for scalars")
    if dtype is not None:
        a, b = a.astype(dtype, copy=False), b.astype(dtype, copy=False)
    if axes is None:
        return arranged(trace.apply(primitive("matmul"), (a, b)), order, (a, b))
    ends = [tuple(range(-len(each), 0)) for each in axes]
    moved = [np.moveaxis(each, own, end) for each, own, end in zip((a, b), axes, ends, strict=False)]
    return np.moveaxis(np.matmul(*moved), ends[-1], axes[-1]) if len(axes) > 2 else np.matmul(*moved)


@implements(np.dot, by_kind=2)
def _dot(trace: Trace, a: Any, b: Any) -> Any:
    a, b = (each if is_tracer(each) else np.asarray(each) for each in (a, b))
    if not a.ndim or not b.ndim:
        return a * b
    a, b = trace.traced(a), trace.traced(b)
    if b.ndim <= 2 and a.ndim <= 2:
        return trace.apply(primitive("matmul"), (a, b))
    return np.tensordot(a, b, axes=([-1], [-1 if b.ndim == 1 else -2]))


@implements(np.inner)
def _inner(trace: Trace, a: Any, b: Any) -> Any:
    a, b = (each if is_tracer(each) else np.asarray(each) for each in (a, b))
    return a * b if not a.ndim or not b.ndim else unboxed(np.tensordot(a, b, axes=([-1], [-1])))


@implements(np.kron)
def _kron(trace: Trace, a: Any, b: Any) -> Any:
    """NumPy's own asks how the operands lie in memory, for speed alone."""
    a, b = (each if is_tracer(each) else np.asarray(each) for each in (a, b))
    if not a.ndim or not b.ndim:
        return a * b
    ndim = max(a.ndim, b.ndim)
    wide, tall = ((1,) * (ndim - each.ndim) + each.shape for each in (a, b))
    spread = np.reshape(a, [size for extent in wide for size in (extent, 1)])
    product = spread * np.reshape(b, [size for extent in tall for size in (1, extent)])
    return np.reshape(product, [math.prod(pair) for pair in zip(wide, tall, strict=True)])


implements(np.vdot)(lambda trace, a, b: np.matmul(np.ravel(np.conjugate(trace.traced(a))), np.ravel(trace.traced(b))))


@implements(np.vecdot)
def _vecdot(trace: Trace, x1: Any, x2: Any, axis: int = -1, dtype: Any = None, keepdims: bool = False) -> Any:
    return np.sum(np.conjugate(trace.traced(x1)) * x2, axis=axis, dtype=dtype, keepdims=keepdims)


if hasattr(np, "matvec"):

    @implements(np.matvec, np.vecmat, named=True)
    def _with_vectors(name: str, trace: Trace, x1: Any, x2: Any, dtype: Any = None) -> Any:
        x1, x2 = trace.traced(x1), trace.traced(x2)
        if name == "matvec":
            return np.sum(x1 * x2[..., None, :], axis=-1, dtype=dtype)
        return np.sum(np.conjugate(x1)[..., None] * x2, axis=-2, dtype=dtype)


@implements(np.einsum)
def _einsum(
    trace: Trace, *operands: Any, optimize: Any = False, dtype: Any = None, order: str = "K", casting: str = "safe"
) -> Any:
    given, count = list(operands), len(operands) // 2
    # After one text of subscripts, or each before its own list of them.
    places = slice(1, None) if isinstance(operands[0], str) else slice(0, 2 * count, 2)
    arrays = [trace.traced(each) for each in given[places]]
    given[places] = [np.broadcast_to(0.0, each.shape) for each in arrays]
    terms, output, _ = np._core.einsumfunc._parse_einsum_input(given)
    if dtype is not None:
        arrays = [each.astype(dtype, copy=False) for each in arrays]
    stretched = _without_stretching(arrays, terms.split(","))
    single = len(arrays) == 1 and set(terms) == set(output) != set()
    reduced = [_without_repeats(array, term, writeable=single) for array, term in stretched]
    if single:
        # NumPy gives a view, which can be written to.
        ((array, term),) = reduced
        return np.transpose(array, [term.index(letter) for letter in output])
    text = ",".join(term for _, term in reduced) + "->" + output
    return trace.apply(primitive("einsum"), [array for array, _ in reduced], {"subscripts": text})


def _without_stretching(arrays: list[Any], terms: list[str]) -> list[tuple[Any, str]]:
    """Leave out each axis of one element whose label has more elsewhere: NumPy broadcasts it."""
    extents: dict[str, int] = {}
    for array, term in zip(arrays, terms, strict=True):
        for label, extent in zip(term, array.shape, strict=True):
            known = extents.get(label, 1)
            if (1 not in (known, extent) and known != extent) or extent != array.shape[term.index(label)]:
                raise ValueError(f"einsum: the label {label!r} of {term!r} stands for more than one extent")
            extents[label] = extent if known == 1 else known
    found: list[tuple[Any, str]] = []
    for array, term in zip(arrays, terms, strict=True):
        kept = [axis for axis, label in enumerate(term) if array.shape[axis] == extents[label]]
        if len(kept) < len(term):
            array = np.reshape(array, tuple(array.shape[axis] for axis in kept))
        found.append((array, "".join(term[axis] for axis in kept)))
    return found


def _without_repeats(array: Any, term: str, *, writeable: bool) -> tuple[Any, str]:
    """Take diagonals until no label of a term stands twice."""
    for letter in set(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            array = diagonal(array._trace, array, 0, first, second, writeable=writeable)
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
    return array, term


@implements(np.trace)
def _trace(trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    return np.sum(np.diagonal(trace.traced(a), offset, axis1, axis2), axis=-1, dtype=dtype)


@implements(np.cross)
def _cross(
    trace: Trace, a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(trace.traced(a), axisa, -1), np.moveaxis(trace.traced(b), axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("np.cross: both vectors must have 3 components")
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)
