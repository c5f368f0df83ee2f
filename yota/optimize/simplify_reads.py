"""Rules of `simplify` for reads and writes at static indices: elements are taken from where they were put."""

from __future__ import annotations

import numpy as np

from yota.ir.access_maps import viewed
from yota.ir.extents import at_most
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, pattern_shape, takes_all
from yota.ir.semantics import JOINS, VIEWS, AccessMap
from yota.ir.tape import Op
from yota.optimize.array_writes import as_slice, covers, is_basic, meet
from yota.optimize.case import Case, Rule

_LONGEST_WALK = 64
_MOST_PIECES = 8
"""Writes that are looked at for whether they fill an array."""


def _whole(case: Case) -> int | None:
    is_whole = takes_all(case.keyword("index"), case.type_of(case.operands[0]).shape)
    return case.same(case.operands[0]) if is_whole else None


def _element(case: Case) -> tuple[int, ...] | None:
    """The index, if it is of one element."""
    index = case.keyword("index")
    return index if index and all(isinstance(entry, int) for entry in index) else None


def _of_read(case: Case) -> int | None:
    """``x[i][j]`` in one step."""
    inner = case.definition(case.operands[0], "getitem")
    if inner is None or len(inner.operands) > 1 or len(case.operands) > 1:
        return None
    source = inner.operands[0]
    index = compose(inner.keyword("index"), case.keyword("index"))
    return None if index is None else case.make("getitem", (source,), {"index": index}, case.type)


def compose(first: Index, second: Index) -> Index | None:
    """The index that does what ``second`` does after ``first``; None if there is none."""
    if any(entry is GATHER or entry is NEWAXIS for entry in (*first, *second)):
        return None
    outer = iter(second)
    found: list[int | Slice] = []
    for entry in first:
        if isinstance(entry, int):
            found.append(entry)
            continue
        assert isinstance(entry, Slice)
        chosen = next(outer)
        if isinstance(chosen, int):
            found.append(entry.start + chosen * entry.step)
            continue
        assert isinstance(chosen, Slice)
        count, step = chosen.count(), entry.step * chosen.step
        if count == 0:
            return None
        start = entry.start + chosen.start * entry.step
        stop: int | None = start + (count - 1) * step + (1 if step > 0 else -1)
        found.append(Slice(start, None if stop == -1 else stop, step))
    return tuple(found)


def _of_view(case: Case) -> int | None:
    """An element of a reshaped, transposed or broadcast array."""
    index, inner = _element(case), case.definition(case.operands[0])
    if index is None or inner is None or inner.access not in VIEWS:
        return None
    shape = case.type_of(inner.operands[0]).shape
    if inner.access == AccessMap.RESHAPE:
        flat = np.ravel_multi_index(index, case.type_of(case.operands[0]).shape)
        return _one(case, inner.operands[0], tuple(map(int, np.unravel_index(int(flat), shape))))
    return _one(case, inner.operands[0], viewed(inner, index, shape, 0))


def _of_join(case: Case) -> int | None:
    """An element of a stack or a concatenation."""
    index, inner = _element(case), case.definition(case.operands[0])
    if index is None or inner is None or inner.access not in JOINS:
        return None
    axis = inner.keyword("axis")
    position = index[axis]
    if inner.access == AccessMap.STACK:
        return _one(case, inner.operands[position], index[:axis] + index[axis + 1 :])
    for source in inner.operands:
        extent = case.type_of(source).shape[axis]
        if at_most(position + 1, extent):
            return _one(case, source, (*index[:axis], position, *index[axis + 1 :]))
        if not at_most(extent, position):
            break  # At some sizes it is here, at others behind.
        position -= extent
    return None


def _one(case: Case, source: int, where: tuple[int, ...]) -> int | None:
    if case.type_of(source).dtype != case.type.dtype:
        return None
    return case.make("getitem", (source,), {"index": where}, case.type) if where else case.same(source)


def _of_setitem(case: Case) -> int | None:
    """What was written there, or a read of what was there before if all writes went elsewhere."""
    index, shape = case.keyword("index"), case.type_of(case.operands[0]).shape
    if case.definition(case.operands[0], "setitem") is None or not is_basic(index):
        return None
    source, write = case.simplifier.writes.meeting(case.builder, case.operands[0], index, shape)
    if write is not None:
        found = _written(case, write, index, shape)
        if found is not None:
            return found
    if source == case.operands[0]:
        return None
    return case.make("getitem", (source,), case.static, case.type)


def _written(case: Case, write: Op, index: Index, shape: tuple[int, ...]) -> int | None:
    """The part of a written value that ``index`` reads, if it reads nothing else."""
    written = write.keyword("index")
    if not is_basic(written):
        return None
    places: list[int | Slice] = []
    extents: list[int] = []
    for there, here, extent in zip(written, index, shape, strict=True):
        place = _within(there, here, extent)
        if place is None:
            return None
        if isinstance(there, Slice):
            places.append(place)
            extents.append(there.count())
    value = write.operands[1]
    given = case.type_of(value).shape
    if len(given) > len(places) or case.type_of(value).dtype != case.type.dtype:
        return None
    first = len(places) - len(given)
    inside: list[int | Slice] = []
    for place, extent, own in zip(places[first:], extents[first:], given, strict=True):
        if own != extent and isinstance(place, Slice):
            return None  # it was broadcast
        inside.append(place if own == extent else 0)
    part = case.make("getitem", (value,), {"index": tuple(inside)}) if inside else value
    return part if case.type_of(part) == case.type else case.same(part)


def _within(written: object, read: object, extent: int) -> int | Slice | None:
    """Where in the written part an entry reads; None if it reads outside of it. A number was written whole."""
    if isinstance(written, int):
        return 0 if written == read else None
    assert isinstance(written, Slice)
    if written == read:
        return Slice(0, written.count())
    if isinstance(read, int):
        return (read - written.start) // written.step if covers((written,), (read,), (extent,)) else None
    return read if isinstance(read, Slice) and written == Slice(0, extent) else None


def _of_scatter(case: Case) -> int | None:
    """An element of assembled pieces, each one element too."""
    index, inner = _element(case), case.definition(case.operands[0], "scatter")
    if index is None or inner is None:
        return None
    indices = inner.keyword("indices")
    if len(indices) > _LONGEST_WALK or not all(isinstance(entry, int) for each in indices for entry in each):
        return None
    shape = inner.keyword("shape")
    if any(where != index and meet(where, index, shape) for where in indices):
        return None  # They are one element at some sizes.
    hits = [piece for piece, where in zip(inner.operands, indices, strict=True) if where == index]
    if not hits:
        return case.constant(case.type.dtype.type(0))
    total = hits[0]
    for hit in hits[1:]:
        total = case.make("add", (total, hit), (), case.type)
    return case.same(total)


RULES: tuple[Rule, ...] = (_whole, _of_read, _of_view, _of_join, _of_setitem, _of_scatter)


def _written_over(case: Case) -> int | None:
    """A write over all that an earlier one wrote, which nobody needs any more."""
    array, *rest = case.operands
    index, earlier = case.keyword("index"), case.definition(array, "setitem")
    if earlier is None or not case.single(array) or not is_basic(index) or not is_basic(earlier.keyword("index")):
        return None
    if not covers(index, earlier.keyword("index"), case.type.shape):
        return None
    return case.make("setitem", (earlier.operands[0], *rest), case.static, case.type)


def _written_back(case: Case) -> int | None:
    """``x`` with ``x[i]`` written to ``i``."""
    array, value, *places = case.operands
    read = case.definition(value, "getitem")
    if places or read is None or read.operands != (array,) or read.static != case.static:
        return None
    return array if is_basic(case.keyword("index")) else None


def _written_whole(case: Case) -> int | None:
    """Writes side by side that fill an array: what it held before is of no account."""
    array, value, *places = case.operands
    index, pieces, covered = case.keyword("index"), list[tuple[Index, int]](), 0
    while not places and len(pieces) < _MOST_PIECES:
        slab = _slab(index, case.type.shape)
        if slab is None:
            return None
        axis, part = slab
        pieces.append((index, value))
        covered += part.count()
        if covered == case.type.shape[axis]:
            return _joined(case, pieces)
        earlier = case.definition(array, "setitem") if case.single(array) else None
        if earlier is None:
            return None
        (array, value, *places), index = earlier.operands, earlier.keyword("index")
    return None


def _added_everywhere(case: Case) -> int | None:
    """Pieces side by side added to zeros, or one piece to all of them, so that none is left.

    A negative zero stays one; in the value a sum with zero would make it positive.
    """
    indices = case.keyword("indices")
    if len(case.operands) != len(indices) or len(indices) > _MOST_PIECES or not case.simplifier.derived:
        return None
    if len(indices) == 1 and takes_all(indices[0], case.type.shape):
        return case.operands[0] if case.type_of(case.operands[0]) == case.type else None
    return _joined(case, list(zip(indices, case.operands, strict=True)))


def _joined(case: Case, pieces: list[tuple[Index, int]]) -> int | None:
    """The pieces put together, if they lie side by side and fill the array."""
    shape, found, axis = case.type.shape, dict[int, tuple[int, Index, int]](), None
    for index, value in pieces:
        slab = _slab(index, shape)
        if slab is None or axis not in (None, slab[0]) or case.type_of(value).dtype != case.type.dtype:
            return None
        axis, part = slab
        if part.start in found:
            return None
        found[part.start] = part.start + part.count(), index, value
    joined, start = list[tuple[Index, int]](), 0
    while axis is not None and start in found:
        start, index, value = found.pop(start)
        joined.append((index, _broadcast(case, index, value)))
    if axis is None or found or start != shape[axis]:
        return None
    if all(isinstance(index[axis], int) for index, _ in joined):
        return case.make("stack", [value for _, value in joined], {"axis": axis})
    return case.make("concatenate", [_piece(case, *each) for each in joined], {"axis": axis})


def _slab(index: Index, shape: tuple[int, ...]) -> tuple[int, Slice] | None:
    """The one axis along which an index takes a part, and which part; None if there is no such axis."""
    if len(index) != len(shape):
        return None
    parts = [k for k, (entry, extent) in enumerate(zip(index, shape, strict=True)) if entry != Slice(0, extent)]
    if len(parts) != 1 or not isinstance(index[parts[0]], int | Slice):
        return None
    part = as_slice(index[parts[0]])
    return None if part.step != 1 or part.count() == 0 else (parts[0], part)


def _broadcast(case: Case, index: Index, value: int) -> int:
    """A written value in the shape of the part that it fills."""
    shape = pattern_shape(index)
    return value if case.type_of(value).shape == shape else case.make("broadcast_to", (value,), {"shape": shape})


def _piece(case: Case, index: Index, value: int) -> int:
    """A value that fills a part, with the axis of an integer kept."""
    kept = tuple(as_slice(entry).count() for entry in index)
    return value if kept == case.type_of(value).shape else case.make("reshape", (value,), {"shape": kept})


def _put_at_zeros(case: Case) -> int | None:
    """``x`` with zeros written to ``i``, and pieces added of which one fills ``i``: the adjoint of ``x[i] += a``.

    A negative zero stays one; in the value a sum with zero would make it positive.
    """
    if not case.simplifier.derived:
        return None
    for one, other in (case.operands, case.operands[::-1]):
        write, pieces = case.definition(one, "setitem"), case.definition(other, "scatter")
        if write is None or pieces is None or len(write.operands) != 2 or case.value(write.operands[1]) != 0:
            continue
        index, indices = write.keyword("index"), pieces.keyword("indices")
        if len(pieces.operands) != len(indices) or not is_basic(index) or index not in indices:
            continue
        filled = indices.index(index)
        piece = pieces.operands[filled]
        if case.type_of(piece).shape != pattern_shape(index) or not _agree(case, write, piece):
            continue
        whole = case.make("setitem", (write.operands[0], piece), write.static, case.type)
        rest = pieces.operands[:filled] + pieces.operands[filled + 1 :]
        if not rest:
            return whole
        static = {**dict(pieces.static), "indices": indices[:filled] + indices[filled + 1 :]}
        return case.make("add", (whole, case.make("scatter", rest, static, case.type)), (), case.type)
    return None


def _agree(case: Case, write: Op, piece: int) -> bool:
    """Whether all that is added has one dtype."""
    types = (case.type_of(variable) for variable in (*case.operands, write.operands[0], piece))
    return all(type.dtype == case.type.dtype for type in types)


EXACT: dict[str, tuple[Rule, ...]] = {"setitem": (_written_over, _written_back, _written_whole)}

LOOSE: dict[str, tuple[Rule, ...]] = {"add": (_put_at_zeros,), "scatter": (_added_everywhere,)}
