"""Compiled kernels of scipy.sparse on traced numbers, so that its classes, written in Python, hold traced data.

The pattern of a matrix is plain. A kernel that moves numbers runs on their positions, which tell where each one went.
"""

from __future__ import annotations

import bisect
import sys
from typing import Any

from yota.tracing.forms import Trace, is_traced, is_tracer, np, original, paused, records

MODULE = "scipy.sparse._sparsetools"


def kernel(name: str) -> Any:
    """The compiled kernel itself."""
    return original(getattr(sys.modules[MODULE], name))


def pattern(trace: Trace, value: Any, is_read: bool = True) -> Any:
    """Indices of a matrix, plain and, if they are read, watched; those that depend on traced numbers are refused."""
    if not is_tracer(value):
        if is_read:
            trace.lift(value)
        return value
    if not trace.is_constant(trace.lift(value)):
        raise trace.refuse("the pattern of a sparse matrix depends on traced numbers.", "Compute it outside.")
    return value._value()


def rows_of(pointers: Any) -> Any:
    """The row of each number of a matrix in compressed rows."""
    return np.repeat(np.arange(len(pointers) - 1), np.diff(pointers))


def constant(trace: Trace, places: Any) -> Any:
    """A copy of places, which need not be compared at each call; kernels may sort the places themselves."""
    return trace.constant(np.array(places, order="C"))


def put(out: Any, found: Any) -> None:
    """Have ``out`` hold what a kernel wrote; a number of a plain array is no traced one."""
    if is_tracer(out) or out is not found:
        out[...] = np.reshape(found, out.shape)


def positions(shape: Any) -> Any:
    """Positions of the numbers of an array, counted from 1, as numbers."""
    return np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


def picked(trace: Trace, data: Any, places: Any) -> Any:
    """Numbers of ``data`` at places counted from 1; 0 at place 0."""
    data = np.ravel(trace.traced(data))
    places = np.asarray(places).astype(np.intp)
    if places.ndim == 1 and places.size == data.size and np.array_equal(places, np.arange(1, data.size + 1)):
        return data
    if places.all():
        return data[constant(trace, places - 1)]
    return np.concatenate([np.zeros(1, data.dtype), data])[constant(trace, places)]


_MOVES = {
    "coo_tocsr": (5, 8),
    "csr_tocsc": (4, 7),
    "csr_tobsr": (6, 9),
    "bsr_tocsr": (6, 9),
    "bsr_transpose": (6, 9),
    "csr_row_index": (4, 6),
    "csr_row_slice": (5, 7),
    "csr_column_index2": (4, 6),
    "csr_hstack": (5, 8),
    "csr_sort_indices": (3, 3),
    "bsr_sort_indices": (6, 6),
    "dia_tocsr": (5, 7),
    "get_csr_submatrix": (4, None),
}
"""Places of the numbers among a kernel's arguments, and of those that it writes; None where it gives them."""


@records(MODULE, *_MOVES, named=True)
def _moving(name: str, trace: Trace, *args: Any) -> Any:
    """The form of a kernel that moves the numbers of one argument into another, or gives them as its last result."""
    source, target = _MOVES[name]
    data = args[source]
    numbers = {target: np.zeros(np.shape(args[target or 0])), source: positions(np.shape(data))}
    given = [
        numbers[place] if place in numbers else pattern(trace, each, place < source) if np.ndim(each) else each
        for place, each in enumerate(args)
    ]
    with paused():
        found = kernel(name)(*given)
    if target is None:
        return (*found[:-1], picked(trace, data, found[-1]))
    for number, each in enumerate(args):
        if number == target:
            put(each, picked(trace, data, given[target]))
        elif number != source and is_tracer(each):
            put(each, given[number])
        elif np.ndim(each) and (number > source or source == target):
            trace.captures.written(each)
    return found


_PLACES = {"csr_column_index1": (6, 7), "csr_sample_offsets": (7,)}
"""Places of the whole numbers that a kernel writes, which are traced ones where whole numbers are recorded."""


@records(MODULE, *_PLACES, named=True)
def _of_places(name: str, trace: Trace, *args: Any) -> Any:
    outputs = _PLACES[name]
    given = [
        np.array(pattern(trace, each, place not in outputs)) if np.ndim(each) else each
        for place, each in enumerate(args)
    ]
    with paused():
        found = kernel(name)(*given)
    for place in outputs:
        put(args[place], given[place])
    return found


@records(MODULE, "expandptr")
def _expand(trace: Trace, count: int, pointers: Any, rows: Any) -> None:
    """The new array of rows is a traced one where whole numbers are recorded."""
    put(rows, rows_of(pattern(trace, pointers)))
    if not is_tracer(rows):
        trace.captures.written(rows)


@records(MODULE, "csr_eliminate_zeros")
def _eliminate_zeros(trace: Trace, rows: int, columns: int, pointers: Any, indices: Any, data: Any) -> None:
    if not bool(np.all(trace.traced(data) != 0)):
        raise trace.refuse("a traced number of a sparse matrix is 0, and would leave its pattern.", "Keep it.")


records("scipy._lib._util", "_prune_array")(lambda trace, array: array.copy())


@records("scipy.sparse._coo", "_coo_base.__init__")
def _from_dense(trace: Trace, self: Any, arg1: Any, *args: Any, **keywords: Any) -> None:
    """A full matrix that depends on an input has a number at each place, since zeros have derivatives too."""
    begin = original(sys.modules["scipy.sparse._coo"]._coo_base.__init__)
    if is_traced(arg1) and not isinstance(arg1, tuple):
        dense = trace.traced(arg1)
        dense = dense if dense.ndim else np.reshape(dense, (1, 1))
        is_stored = np.ones(dense.shape, bool) if trace.varies(dense) else trace.values[trace.lift(dense)] != 0
        places = np.nonzero(is_stored)
        arg1 = (dense[places], tuple(places))
        keywords = {"shape": dense.shape, **{name: value for name, value in keywords.items() if name != "shape"}}
    begin(self, arg1, *args, **keywords)


@records("scipy.sparse._construct", "_block", "bmat", "hstack", "vstack", named=True)
def _of_blocks(name: str, trace: Trace, blocks: Any, *args: Any, **keywords: Any) -> Any:
    """SciPy puts blocks into an array of objects, which cannot hold a traced one."""
    own = vars(sys.modules["scipy.sparse._construct"])

    def kept(block: Any) -> Any:
        if isinstance(block, (list, tuple)) and not (block and np.isscalar(block[0])):
            return list(map(kept, block))
        return own["coo_matrix"](block) if is_traced(block) else block

    return original(own[name])(kept(blocks), *args, **keywords)


@records("scipy.sparse._dia", "_dia_base.multiply")
def _times_dense(trace: Trace, self: Any, other: Any) -> Any:
    """SciPy multiplies a copy of the numbers in place."""
    plain = original(sys.modules["scipy.sparse._dia"]._dia_base.multiply)
    return plain(self if is_traced(self.data) else self._with_data(trace.traced(self.data).copy()), other)


@records("scipy.sparse._data", "_data_matrix.__imul__", "_data_matrix.__itruediv__", named=True)
def _scaled_in_place(name: str, trace: Trace, self: Any, other: Any) -> Any:
    """SciPy writes into the numbers, which may be plain ones."""
    if not is_traced(other) or np.ndim(other):
        return NotImplemented
    self.data = self.data / other if name.endswith("__itruediv__") else self.data * other
    return self


@records("scipy.sparse._dia", "_dia_base.sum")
def _sum_of_diagonals(trace: Trace, self: Any, *args: Any, **keywords: Any) -> Any:
    return self.tocsr().sum(*args, **keywords)


@records("scipy.sparse._bsr", "_bsr_base.diagonal")
def _diagonal_of_blocks(trace: Trace, self: Any, k: int = 0) -> Any:
    return self.tocsr().diagonal(k)


@records("scipy.sparse._dia", "_dia_base._matmul_sparse")
@records("scipy.sparse._bsr", "_bsr_base._matmul_sparse")
def _product_of_rows(trace: Trace, self: Any, other: Any) -> Any:
    found = self.tocsr() @ other.tocsr()
    if self.format == "bsr":
        return found.tobsr((self.blocksize[0], getattr(other, "blocksize", (1, 1))[1]))
    return found.asformat("dia" if other.format == "dia" else "csr")


@records("scipy.sparse._compressed", "_cs_matrix._insert_many")
def _insert(trace: Trace, self: Any, i: Any, j: Any, x: Any) -> None:
    """New elements, of which the last one at a place counts, among the others."""
    last = len(i) - 1 - np.unique(np.stack([i, j])[:, ::-1], axis=1, return_index=True)[1]
    rows = np.concatenate([np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr)), i[last]])
    columns = np.concatenate([self.indices, j[last]])
    order, counts = np.lexsort((columns, rows)), np.bincount(rows, minlength=len(self.indptr) - 1)
    self.indices = columns[order].astype(self.indices.dtype)
    self.indptr = np.append(0, np.cumsum(counts)).astype(self.indptr.dtype)
    self.data = np.concatenate([trace.traced(self.data), x[last]])[order]


@records("scipy.sparse._lil", "_lil_base.__init__")
def _rows_of_dense(trace: Trace, self: Any, arg1: Any, *args: Any, **keywords: Any) -> None:
    """SciPy makes a matrix of NumPy's of a full one."""
    full = is_traced(arg1) and not hasattr(arg1, "format") and not isinstance(arg1, tuple)
    begin = original(sys.modules["scipy.sparse._lil"]._lil_base.__init__)
    begin(self, self._csr_container(arg1) if full else arg1, *args, **keywords)


@records("scipy.sparse._lil", "_lil_base.tocsr")
def _to_compressed_rows(trace: Trace, self: Any, copy: bool = False) -> Any:
    pointers = np.cumsum([0, *map(len, self.rows)])
    columns, values = ([each for row in rows for each in row] for rows in (self.rows, self.data))
    return self._csr_container((trace.traced(values), columns, pointers), shape=self.shape)


@records("scipy.sparse._dok", "_dok_base.tocoo", always=True)
def _to_coordinates(trace: Trace, self: Any, copy: bool = False) -> Any:
    values = list(self.values())
    if not is_traced(values):
        return original(sys.modules["scipy.sparse._dok"]._dok_base.tocoo)(self, copy)
    places = np.reshape(list(self.keys()), (-1, self.ndim))
    return self._coo_container((trace.traced(values), tuple(places.T)), shape=self.shape)


@records("scipy.sparse._base", "_spbase.sum", always=True)
def _sum(trace: Trace, self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """SciPy makes a matrix of NumPy's, or multiplies by one, on the way."""
    is_plain = not is_traced(list(self.values()) if self.format == "dok" else self.data)
    if is_plain or self.ndim > 2 or (axis is not None and self.format in ("csr", "csc")):
        return original(sys.modules["scipy.sparse._base"]._spbase.sum)(self, axis, dtype, out)
    rows = self.tocsr()
    return np.sum(rows.data, dtype=dtype, out=out) if axis is None else rows.sum(axis, dtype, out)


@records("scipy.sparse._lil", "_lil_base._get_intXint")
def _element(trace: Trace, self: Any, row: int, col: int) -> Any:
    columns, column = self.rows[row], range(self.shape[1])[col]
    return self.data[row][columns.index(column)] if column in columns else self.dtype.type(0)


@records("scipy.sparse._lil", "_lil_base.__setitem__")
def _set_elements(trace: Trace, self: Any, key: Any, x: Any) -> None:
    is_mask = getattr(key, "ndim", 1) == 2
    key = np.nonzero(key) if is_mask else key if isinstance(key, tuple) else (key, slice(None))
    rows, columns = (np.arange(size)[each] for size, each in zip(self.shape, key, strict=True))
    if rows.ndim == columns.ndim == 1 and any(isinstance(each, slice) for each in key):
        rows = rows[:, None]
    rows, columns = np.broadcast_arrays(rows, columns)
    values = np.broadcast_to(x.tocsr().toarray() if hasattr(x, "toarray") else trace.traced(x), rows.shape)
    for place in np.ndindex(rows.shape):
        row, column = int(rows[place]), int(columns[place])
        known, at = self.rows[row], bisect.bisect_left(self.rows[row], column)
        if known[at : at + 1] != [column]:
            known.insert(at, column)
            self.data[row].insert(at, None)
        self.data[row][at] = values[place]
