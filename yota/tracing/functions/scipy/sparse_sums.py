"""Compiled kernels of scipy.sparse that add and multiply traced numbers: products, sums, full matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.sparsetools import MODULE, constant, kernel, pattern, picked, positions, put, rows_of
from yota.tracing.implementations import records
from yota.tracing.methods import is_tracer
from yota.tracing.state import paused
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _added(trace: Trace, out: Any, places: tuple[Any, ...], values: Any) -> None:
    np.add.at(out, tuple(constant(trace, each) for each in places), values)


def _products(trace: Trace, rows: Any, columns: Any, data: Any, x: Any, y: Any, vectors: int = 0) -> None:
    """Add to ``y`` what the numbers at ``rows`` and ``columns`` times ``x`` give, in their order."""
    data, taken = np.ravel(trace.traced(data)), constant(trace, columns)
    if vectors:
        x, y = np.reshape(x, (-1, vectors)), np.reshape(y, (-1, vectors))
        data = data[:, None]
    _added(trace, y, (rows,), data * trace.traced(x)[taken])


def _compressed(swapped: bool, several: bool) -> Callable[..., None]:
    def form(trace: Trace, m: int, n: int, *args: Any) -> None:
        vectors, args = (args[0], args[1:]) if several else (0, args)
        pointers, indices, data, x, y = args
        places = rows_of(pattern(trace, pointers)), pattern(trace, indices)[: pointers[-1]]
        rows, columns = reversed(places) if swapped else places
        _products(trace, rows, columns, data[: pointers[-1]], x, y, vectors)

    return form


for _name in ("csr", "csc"):
    records(MODULE, f"{_name}_matvec")(_compressed(_name == "csc", False))
    records(MODULE, f"{_name}_matvecs")(_compressed(_name == "csc", True))


def _coordinates(several: bool) -> Callable[..., None]:
    def form(trace: Trace, count: int, *args: Any) -> None:
        vectors, args = (args[0], args[1:]) if several else (0, args)
        rows, columns, data, x, y = args
        _products(trace, pattern(trace, rows), pattern(trace, columns), data, x, y, vectors)

    return form


records(MODULE, "coo_matvec")(_coordinates(False))
records(MODULE, "coo_matmat_dense")(_coordinates(True))


@records(MODULE, "coo_matvec_nd")
def _matvec_nd(trace: Trace, count: int, axes: int, strides: Any, coordinates: Any, data: Any, x: Any, y: Any) -> None:
    places = np.reshape(pattern(trace, coordinates), (axes, -1))
    _products(trace, np.tensordot(np.asarray(strides)[: axes - 1], places[:-1], 1), places[-1], data, x, y)


def _blocks(rows: int, columns: int, pointers: Any, indices: Any) -> tuple[Any, Any]:
    """Row and column of each number of a matrix of blocks."""
    down, across = np.arange(rows)[:, None], np.arange(columns)
    heads = rows_of(pointers)[:, None, None] * rows + down
    tails = np.asarray(indices)[: pointers[-1], None, None] * columns + across
    return tuple(np.ravel(each) for each in np.broadcast_arrays(heads, tails))


def _block_products(several: bool) -> Callable[..., None]:
    def form(trace: Trace, m: int, n: int, *args: Any) -> None:
        vectors, args = (args[0], args[1:]) if several else (0, args)
        height, width, pointers, indices, data, x, y = args
        pointers = pattern(trace, pointers)
        rows, columns = _blocks(height, width, pointers, pattern(trace, indices))
        _products(trace, rows, columns, np.ravel(data)[: len(rows)], x, y, vectors)

    return form


records(MODULE, "bsr_matvec")(_block_products(False))
records(MODULE, "bsr_matvecs")(_block_products(True))


def _diagonals(shape: tuple[int, int], length: int, offsets: Any) -> tuple[Any, Any, Any]:
    """Row and column of each number of diagonals that lies in the matrix, and its place among them."""
    columns = np.broadcast_to(np.arange(length), (len(offsets), length))
    rows = columns - np.asarray(offsets)[:, None]
    inside = np.flatnonzero((rows >= 0) & (rows < shape[0]) & (columns < shape[1]))
    return np.ravel(rows)[inside], np.ravel(columns)[inside], inside


@records(MODULE, "dia_matvec")
def _diagonal_product(
    trace: Trace, m: int, n: int, count: int, length: int, offsets: Any, data: Any, x: Any, y: Any
) -> None:
    rows, columns, inside = _diagonals((m, n), length, pattern(trace, offsets))
    _products(trace, rows, columns, picked(trace, data, inside + 1), np.ravel(x), np.ravel(y))


@records(MODULE, "dia_matvecs")
def _diagonal_products(
    trace: Trace, m: int, n: int, count: int, length: int, offsets: Any, data: Any, vectors: int, x: Any, y: Any
) -> None:
    rows, columns, inside = _diagonals((m, n), length, pattern(trace, offsets))
    _products(trace, rows, columns, picked(trace, data, inside + 1), x, y, vectors)


@records(MODULE, "csr_todense")
def _to_dense(trace: Trace, m: int, n: int, pointers: Any, indices: Any, data: Any, out: Any) -> None:
    rows = rows_of(pattern(trace, pointers))
    _added(trace, out, (rows, pattern(trace, indices)[: len(rows)]), data[: len(rows)])


@records(MODULE, "coo_todense")
def _coo_to_dense(
    trace: Trace, m: int, n: int, count: int, rows: Any, columns: Any, data: Any, out: Any, fortran: int
) -> None:
    rows, columns = (np.asarray(pattern(trace, each), dtype=np.intp) for each in (rows, columns))
    _added(trace, out, (rows + m * columns if fortran else n * rows + columns,), data)


@records(MODULE, "coo_todense_nd")
def _nd_to_dense(
    trace: Trace, strides: Any, count: int, axes: int, coordinates: Any, data: Any, out: Any, fortran: int
) -> None:
    places = np.reshape(pattern(trace, coordinates), (axes, -1))
    _added(trace, out, (np.tensordot(np.asarray(strides), places, 1),), data)


@records(MODULE, "csr_diagonal")
def _diagonal(trace: Trace, k: int, m: int, n: int, pointers: Any, indices: Any, data: Any, out: Any) -> None:
    rows = rows_of(pattern(trace, pointers))
    inside = np.flatnonzero(pattern(trace, indices)[: len(rows)] - rows == k)
    _added(trace, out, (rows[inside] - max(0, -k),), picked(trace, data, inside + 1))


@records(MODULE, "csr_sum_duplicates")
def _sum_duplicates(trace: Trace, m: int, n: int, pointers: Any, indices: Any, data: Any) -> None:
    """Of indices that are sorted."""
    rows = rows_of(pattern(trace, pointers, False))
    columns = pattern(trace, indices, False)[: len(rows)]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (np.diff(rows) != 0) | (np.diff(columns) != 0)
    whole = trace.traced(data)[: len(rows)]
    sums = whole[constant(trace, np.flatnonzero(first))].copy()
    again = np.flatnonzero(~first)
    _added(trace, sums, (np.cumsum(first)[again] - 1,), whole[constant(trace, again)])
    data[: len(sums)] = sums
    indices[: len(sums)] = columns[first]
    pointers[1:] = np.searchsorted(rows[first], np.arange(len(pointers) - 1), side="right")
    for each in (pointers, indices):
        if not is_tracer(each):
            trace.captures.written(each)


@records(MODULE, "csr_sample_values")
def _sample(
    trace: Trace, m: int, n: int, pointers: Any, indices: Any, data: Any, count: int, i: Any, j: Any, out: Any
) -> None:
    """Elements at some places; where the pattern holds one twice, they are added."""
    rows = rows_of(pattern(trace, pointers))
    columns = pattern(trace, indices)[: len(rows)]
    i, j = (np.asarray(pattern(trace, each)).astype(np.intp) for each in (i, j))
    wanted = (i + m * (i < 0)) * n + j + n * (j < 0)
    order = np.argsort(rows * n + columns, kind="stable")
    keys = (rows * n + columns)[order]
    low, high = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    counts = high - low
    taken = order[np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    put(out, np.zeros(len(wanted), out.dtype))
    _added(trace, out, (np.repeat(np.arange(len(wanted)), counts),), trace.traced(data)[constant(trace, taken)])


# -- two matrices ----------------------------------------------------------------------------------------------------


def _both(name: str, blocks: bool) -> Callable[..., None]:
    """The form of a kernel of two matrices, element by element; zeros that come out stay in the pattern."""
    operation: Callable[..., Any] = {
        "plus": np.add,
        "minus": np.subtract,
        "elmul": np.multiply,
        "eldiv": np.divide,
        "maximum": np.maximum,
        "minimum": np.minimum,
    }[name]
    kind = "bsr" if blocks else "csr"
    meet = name in ("elmul", "eldiv")

    def form(trace: Trace, m: int, n: int, *args: Any) -> None:
        combine = kernel(f"{kind}_{'elmul' if meet else 'plus'}_{kind}")
        sizes, args = (args[:2], args[2:]) if blocks else ((), args)
        first, second, out = [*args[:3]], [*args[3:6]], args[6:]
        for each in (first, second):
            each[:2] = [pattern(trace, part) for part in each[:2]]
            keys = rows_of(each[0]) * n + each[1][: each[0][-1]]
            if len(np.unique(keys)) < len(keys):
                raise trace.refuse("a traced sparse matrix holds a place twice.", "Call its sum_duplicates() before.")
        # Sums of positions are told apart by their real and imaginary parts, those of a pattern alone by two runs.
        own, other = positions(first[2].shape), positions(second[2].shape)
        runs = [(own, np.ones_like(other)), (np.ones_like(own), other)] if meet else [(own + 0j, 1j * other)]
        found = []
        for left, right in runs:
            target = [np.zeros(each.shape, left.dtype if each is out[2] else each.dtype) for each in out]
            with paused():
                combine(m, n, *sizes, *first[:2], left, *second[:2], right, *target)
            found.append(target[2])
        places = found if meet else [found[0].real, found[0].imag]
        count = target[0][-1] * (int(np.prod(sizes)) if blocks else 1)
        left, right = (
            picked(trace, each[2], np.ravel(place)[:count]) for each, place in zip((first, second), places, strict=True)
        )
        out[2][:count] = operation(left, right)
        for each, value in zip(out[:2], target[:2], strict=True):
            put(each, value)

    return form


for _name in ("plus", "minus", "elmul", "eldiv", "maximum", "minimum"):
    records(MODULE, f"csr_{_name}_csr")(_both(_name, False))
    records(MODULE, f"bsr_{_name}_bsr")(_both(_name, True))


@records(MODULE, "csr_matmat")
def _product(trace: Trace, m: int, n: int, *args: Any) -> None:
    pointers, indices, data, pointers2, indices2, data2, *out = args
    pointers, indices, pointers2, indices2 = (
        np.asarray(pattern(trace, each)) for each in (pointers, indices, pointers2, indices2)
    )
    target = [np.zeros(each.shape, each.dtype) for each in out[:2]]
    with paused():
        numbers = [np.ones(len(each)) for each in (indices, indices2, out[1])]
        kernel("csr_matmat")(m, n, pointers, indices, numbers[0], pointers2, indices2, numbers[1], *target, numbers[2])
    rows = rows_of(pointers)
    middle = indices[: len(rows)]
    counts = np.diff(pointers2)[middle].astype(np.intp)
    left = np.repeat(np.arange(len(rows)), counts)
    right = np.repeat(pointers2[middle] - np.cumsum(counts) + counts, counts) + np.arange(len(left))
    made = rows_of(target[0])
    keys = made * n + target[1][: len(made)]
    order = np.argsort(keys)
    places = order[np.searchsorted(keys[order], rows[left] * n + indices2[right])]
    put(out[2], np.zeros(out[2].shape, out[2].dtype))
    products = trace.traced(data)[constant(trace, left)] * trace.traced(data2)[constant(trace, right)]
    _added(trace, out[2], (places,), products)
    for each, value in zip(out[:2], target, strict=True):
        put(each, value)
