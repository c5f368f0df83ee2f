"""Compiled kernels of scipy.sparse that add and multiply traced numbers: products, sums, full matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, is_tracer, np, paused, records
from yota.tracing.scipy.sparsetools import MODULE, constant, kernel, pattern, picked, positions, put, rows_of


def _added(trace: Trace, out: Any, places: tuple[Any, ...], values: Any) -> None:
    if not is_tracer(out) and not trace.varies(values):
        values = trace.values[trace.lift(values)]  # SciPy made an array beside constants of the tape
    np.add.at(out, tuple(constant(trace, each) for each in places), values)


def _compressed(trace: Trace, m: int, n: int, pointers: Any, indices: Any, data: Any) -> tuple[Any, Any, Any]:
    count = pointers[-1]
    return rows_of(pattern(trace, pointers)), pattern(trace, indices)[:count], data[:count]


def _swapped(trace: Trace, *matrix: Any) -> tuple[Any, Any, Any]:
    columns, rows, data = _compressed(trace, *matrix)
    return rows, columns, data


def _coordinates(trace: Trace, count: int, rows: Any, columns: Any, data: Any) -> tuple[Any, Any, Any]:
    return pattern(trace, rows), pattern(trace, columns), data


def _of_axes(trace: Trace, count: int, axes: int, strides: Any, coordinates: Any, data: Any) -> tuple[Any, Any, Any]:
    places = np.reshape(pattern(trace, coordinates), (axes, -1))
    return np.tensordot(np.asarray(strides)[: axes - 1], places[:-1], 1), places[-1], data


def _blocks(
    trace: Trace, m: int, n: int, height: int, width: int, pointers: Any, indices: Any, data: Any
) -> tuple[Any, Any, Any]:
    pointers = pattern(trace, pointers)
    heads = rows_of(pointers)[:, None, None] * height + np.arange(height)[:, None]
    tails = np.asarray(pattern(trace, indices))[: pointers[-1], None, None] * width + np.arange(width)
    rows, columns = map(np.ravel, np.broadcast_arrays(heads, tails))
    return rows, columns, np.ravel(data)[: len(rows)]


def _diagonals(trace: Trace, m: int, n: int, count: int, length: int, offsets: Any, data: Any) -> tuple[Any, Any, Any]:
    """Of numbers on diagonals, those that lie in the matrix."""
    offsets = np.asarray(pattern(trace, offsets))
    columns = np.broadcast_to(np.arange(length), (len(offsets), length))
    rows = columns - offsets[:, None]
    inside = np.flatnonzero((rows >= 0) & (rows < m) & (columns < n))
    return np.ravel(rows)[inside], np.ravel(columns)[inside], picked(trace, data, inside + 1)


_PRODUCTS: dict[str, tuple[Callable[..., tuple[Any, Any, Any]], int | None]] = {
    "csr_matvec": (_compressed, None),
    "csr_matvecs": (_compressed, 2),
    "csc_matvec": (_swapped, None),
    "csc_matvecs": (_swapped, 2),
    "coo_matvec": (_coordinates, None),
    "coo_matmat_dense": (_coordinates, 1),
    "coo_matvec_nd": (_of_axes, None),
    "bsr_matvec": (_blocks, None),
    "bsr_matvecs": (_blocks, 2),
    "dia_matvec": (_diagonals, None),
    "dia_matvecs": (_diagonals, 6),
}
"""What gives row and column of each number, and the numbers; and the place of how many vectors there are."""


@records(MODULE, *_PRODUCTS, named=True)
def _product_of(name: str, trace: Trace, *args: Any) -> None:
    """The form of a kernel that adds a matrix times a vector, or times several."""
    matrix, place = _PRODUCTS[name]
    *given, x, y = args
    vectors = 0 if place is None else given.pop(place)
    rows, columns, data = matrix(trace, *given)
    data = np.ravel(trace.traced(data))
    if vectors:
        x, y, data = np.reshape(x, (-1, vectors)), np.reshape(y, (-1, vectors)), data[:, None]
    elif np.ndim(y) > 1:
        x, y = np.ravel(x), np.ravel(y)
    _added(trace, y, (rows,), data * trace.traced(x)[constant(trace, columns)])


@records(MODULE, "csr_todense")
def _to_dense(trace: Trace, m: int, n: int, pointers: Any, indices: Any, data: Any, out: Any) -> None:
    rows, columns, data = _compressed(trace, m, n, pointers, indices, data)
    _added(trace, out, (rows, columns), data)


@records(MODULE, "coo_todense")
def _coo_to_dense(trace: Trace, m: int, n: int, count: int, *given: Any) -> None:
    *places, data, out, fortran = given
    rows, columns = (np.asarray(pattern(trace, each), dtype=np.intp) for each in places)
    _added(trace, out, (rows + m * columns if fortran else n * rows + columns,), data)


@records(MODULE, "coo_todense_nd")
def _nd_to_dense(trace: Trace, strides: Any, count: int, axes: int, coordinates: Any, *given: Any) -> None:
    places = np.reshape(pattern(trace, coordinates), (axes, -1))
    _added(trace, given[1], (np.tensordot(np.asarray(strides), places, 1),), given[0])


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


_OPERATIONS = {
    "plus": np.add,
    "minus": np.subtract,
    "elmul": np.multiply,
    "eldiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@records(MODULE, *(f"{kind}_{each}_{kind}" for kind in ("csr", "bsr") for each in _OPERATIONS), named=True)
def _both(name: str, trace: Trace, m: int, n: int, *args: Any) -> None:
    """The form of a kernel of two matrices, element by element; zeros that come out stay in the pattern."""
    kind, operation, _ = name.split("_")
    meet, blocks = operation in ("elmul", "eldiv"), kind == "bsr"
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
    out[2][:count] = _OPERATIONS[operation](left, right)
    for each, value in zip(out[:2], target[:2], strict=True):
        put(each, value)


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
