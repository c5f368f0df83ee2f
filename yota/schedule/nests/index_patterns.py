"""Gathers and scatters by index arrays that are constants or arguments, brought to a form that loops can take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from yota.emit.c.dialect import is_known
from yota.errors import CodegenError
from yota.ir.access_maps import pieces
from yota.ir.extents import Extent, at_most
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, layout, pieces_of
from yota.ir.primitive import Primitive
from yota.ir.semantics import VIEWS, AccessMap, Positions
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting, rewritten
from yota.schedule.nests.linear_index import Linear, Point, spread


def is_fixed(tape: Tape, op: Op, given: frozenset[int] = frozenset()) -> bool:
    """Whether an op gathers, or adds one piece, by index arrays that are constants, or among those ``given``."""
    if op.access == AccessMap.SCATTER:
        if len(op.keyword("indices")) != 1 or not tape.types[op.result].differentiable:
            return False
    elif op.access != AccessMap.READ:
        return False
    known = all(each in tape.constants or each in given for each in op.operands[1:])
    whole = all(tape.types[each].dtype.kind in "iu" for each in op.operands[1:])
    return len(op.operands) > 1 and known and whole


def given_places(tape: Tape) -> frozenset[int]:
    """Arguments that serve as index arrays of axes of one extent, and as nothing else but for decisions on them."""
    extents: dict[int, set[int]] = {}
    for op in tape.ops:
        places = index_operands(tape, op) if op.access != AccessMap.WRITE else {}
        for at, variable in enumerate(op.operands):
            if at in places:
                extents.setdefault(variable, set()).add(places[at])
            elif op.semantics.fold not in ("minimum", "maximum"):
                extents.setdefault(variable, set()).update((-1, -2))
    names = ("int32", "int64", "uint8")
    return frozenset(
        entry.variable
        for entry in tape.inputs
        if len(extents.get(entry.variable, ())) == 1
        and tape.types[entry.variable].dtype.name in names
        and tape.types[entry.variable].size != 0
        and tape.types[entry.variable].shape
    )


def index_arrays(tape: Tape, op: Op) -> list[tuple[int, int]]:
    """The index arrays among an op's operands, with the extents; see `index_operands`."""
    return [(op.operands[at], extent) for at, extent in index_operands(tape, op).items()]


def index_operands(tape: Tape, op: Op) -> dict[int, int]:
    """Which of an op's operands are index arrays, each with the extent of the axis that it has places on."""
    found: dict[int, int] = {}
    shape = tape.types[op.operands[0] if op.access == AccessMap.READ else op.result].shape
    for _, arrays, index in pieces(op):
        found.update(zip(arrays, gathered_extents(index, shape), strict=True))
    return found


def gathered_extents(index: Index, shape: Sequence[int]) -> list[int]:
    """Extents of the axes that index arrays stand for."""
    axes = [entry for entry in index if entry is not NEWAXIS]
    return [extent for entry, extent in zip(axes, shape, strict=True) if entry is GATHER]


def normalised(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with one piece to a scatter by arrays, and no index that counts from the end; scatters ``kept`` stay."""
    if not any(GATHER in index for op in tape.ops for _, _, index in pieces(op)):
        return tape
    known: dict[bytes, int] = {}

    def replacement(rewriting: Rewriting, op: Op) -> int | None:
        plain = op.access == AccessMap.WRITE or not any(GATHER in index for _, _, index in pieces(op))
        if plain or (op.access == AccessMap.SCATTER and op.result in kept):
            return None
        if op.access == AccessMap.SCATTER:
            return _split(rewriting, op, known)
        shape = tape.types[op.operands[0]].shape
        arrays = _wrapped(rewriting, op.operands[1:], op.keyword("index"), shape, known)
        operands = (rewriting[op.operands[0]], *arrays)
        return rewriting.emit(op.primitive, operands, op.static, tape.types[op.result])

    return rewritten(tape, replacement)


def _split(rewriting: Rewriting, op: Op, known: dict[bytes, int]) -> int:
    """A scatter of several pieces as a sum: those without arrays together, each of the others by itself."""
    type = rewriting.tape.types[op.result]
    plain: list[tuple[int, Index]] = []
    found: list[int] = []
    for piece, arrays, index in pieces_of(op.operands, op.keyword("indices")):
        if not arrays:
            plain.append((rewriting[piece], index))
            continue
        operands = (rewriting[piece], *_wrapped(rewriting, arrays, index, type.shape, known))
        found.append(rewriting.emit(op.primitive, operands, {"shape": type.shape, "indices": (index,)}))
    if plain:
        static = {"shape": type.shape, "indices": tuple(index for _, index in plain)}
        found.append(rewriting.emit(op.primitive, [piece for piece, _ in plain], static))
    total = found[0]
    for each in found[1:]:
        total = rewriting.emit("add", (total, each))
    if rewriting.type(total).dtype != type.dtype:
        total = rewriting.emit("astype", (total,), {"dtype": type.dtype})
    return total


def _wrapped(
    rewriting: Rewriting, arrays: Sequence[int], index: Index, shape: Sequence[int], known: dict[bytes, int]
) -> list[int]:
    """The index arrays without negative numbers, and narrow: half the memory to read."""
    found = []
    for variable, extent in zip(arrays, gathered_extents(index, shape), strict=True):
        value = rewriting.tape.constants.get(variable)
        if value is None or np.asarray(value).dtype.kind not in "iu":
            found.append(rewriting[variable])
            continue
        whole = np.asarray(value).astype(np.int64)
        if isinstance(extent, Extent) and whole.size and whole.min() < 0:
            raise CodegenError("positions that count from the end of an axis of any length cannot be said; pass them")
        whole = np.where(whole < 0, whole + extent, whole)
        narrow = np.ascontiguousarray(whole.astype(np.int32 if np.prod(shape) < 2**31 else np.int64))
        narrow.flags.writeable = False
        key = repr((narrow.shape, narrow.dtype)).encode() + narrow.tobytes()
        if key not in known:
            known[key] = rewriting.builder.constant(narrow if narrow.ndim else narrow[()])
        found.append(known[key])
        if variable in rewriting.tape.names:
            rewriting.builder.names.setdefault(found[-1], rewriting.tape.names[variable])
    return found


def place(
    point: Point, index: Index, arrays: Sequence[tuple[int, ...]], number: Sequence[Linear] | None = None
) -> tuple[Point, list[Point]]:
    """For a point of ``x[index]``: the point of ``x``, with ``number`` at the gathered axes, and that of each array."""
    front, _ = layout(index)
    count = len(np.broadcast_shapes(*arrays))
    middle = point[front : front + count]
    rest = iter(point[:front] + point[front + count :])
    looked = [spread(middle, shape) for shape in arrays]
    numbers = iter(number if number is not None else [Linear(0)] * len(arrays))
    found: list[Linear] = []
    for entry in index:
        if entry is NEWAXIS:
            next(rest)
        elif isinstance(entry, Slice):
            found.append(next(rest).scaled(entry.step).shifted(entry.start))
        else:
            found.append(Linear(entry) if isinstance(entry, int) else next(numbers))
    return tuple(found), looked


def _counted(index: Any, *, extent: int) -> Any:
    return np.where(np.asarray(index) < 0, np.asarray(index) + extent, index).astype(np.int64)


PLACES = Primitive("places", None, False, _counted)
"""Places on an axis of ``extent`` elements, counted from its start; it fails if one is outside."""


def is_places(op: Op) -> bool:
    """Whether an op looks at an index array."""
    return op.primitive is PLACES


def from_sizes(tape: Tape) -> set[int]:
    """What is computed from sizes and constants alone."""
    found = set(tape.constants)
    for op in tape.ops:
        if found.issuperset(op.operands):
            found.add(op.result)
    return found - set(tape.constants)


def with_places(tape: Tape, as_they_are: Collection[int] = (), *, checked: bool = True) -> Tape:
    """``tape`` in which each index array of gathers, scatters and writes is in memory, and places on one axis only.

    as_they_are: arguments that are so already; so are constants, and positions that are found on no longer an axis.
    checked: whether they come from `PLACES`; if not, whoever reads looks at them, and what is not read is left alone.
    """
    arrays = {op.operands[at] for op in tape.ops for at in _looked_at(tape, op, checked)}
    if arrays <= set(tape.constants):
        return tape
    rewriting = Rewriting(tape)
    known: dict[tuple[int, int], int] = {}
    for op in tape.ops:
        extents = _looked_at(tape, op, checked)
        operands = [
            _placed(rewriting, operand, extents[at], known, checked)
            if at in extents and operand not in as_they_are
            else rewriting[operand]
            for at, operand in enumerate(op.operands)
        ]
        if checked and extents and _counts(rewriting, op) and _is_inside(rewriting, operands[1], extents[1]):
            rewriting.bind(op.result, operands[1])
            continue
        rewriting.builder.location = op.location
        made = rewriting.builder.emit(op.primitive, operands, op.static, tape.types[op.result])
        rewriting.bind(op.result, made)
    return rewriting.finish()


def _looked_at(tape: Tape, op: Op, checked: bool) -> dict[int, int]:
    """Which operands of an op that reads, or writes if those are ``checked``, are index arrays, with extents."""
    return index_operands(tape, op) if checked or op.access == AccessMap.READ else {}


def _counts(rewriting: Rewriting, op: Op) -> bool:
    """Whether an op reads the array of all places of an axis."""
    if op.access != AccessMap.READ or len(op.operands) != 2:
        return False
    made = rewriting.definition(rewriting[op.operands[0]])
    if made is not None and made.access == AccessMap.POSITIONS:
        return (made.keyword("start"), made.keyword("steps")) == (0, (1,))
    value = np.asarray(rewriting.tape.constants.get(op.operands[0], 0))
    return value.ndim == 1 and np.array_equal(value, np.arange(value.size))


def is_inside(
    definition: Callable[[int], Op | None], types: Mapping[int, TensorType], variable: int, extent: int
) -> bool:
    """Whether an index array is sure to have places on an axis of ``extent`` only, counted from its start."""
    op = definition(variable)
    while op is not None and (op.access == AccessMap.READ or op.access in VIEWS):
        op = definition(op.operands[0])
    if op is None:
        return False
    if op.primitive is PLACES:
        return bool(op.keyword("extent") == extent)
    found = op.semantics.positions
    if found in (Positions.NONE, Positions.BETWEEN):
        return False
    type = types[op.operands[0]]
    if found == Positions.SORTED:
        return at_most(types[op.result].shape[op.keyword("axis")], extent)
    return all(at_most(each, extent) for each in ((type.size,) if found == Positions.TRUE else type.shape))


def _is_inside(rewriting: Rewriting, variable: int, extent: int) -> bool:
    return is_inside(rewriting.builder.definition, rewriting.builder.types, variable, extent)


def _placed(rewriting: Rewriting, operand: int, extent: int, known: dict[tuple[int, int], int], checked: bool) -> int:
    type = rewriting.tape.types[operand]
    if (
        operand in rewriting.tape.constants
        or not (type.shape or checked)
        or type.dtype.kind not in "iu"
        or not is_known(type.dtype)
    ):
        return rewriting[operand]
    if checked and _is_inside(rewriting, rewriting[operand], extent):
        return rewriting[operand]
    key = operand, extent
    if key not in known:
        own = TensorType(np.dtype(np.int64), type.shape)
        if checked:
            known[key] = rewriting.builder.emit(PLACES, (rewriting[operand],), {"extent": extent}, own)
        else:
            known[key] = rewriting.emit("astype", (rewriting[operand],), {"dtype": own.dtype}, own)
        rewriting.builder.names[known[key]] = f"{_name(rewriting.tape, operand)}_places"
    return known[key]


def _name(tape: Tape, variable: int) -> str:
    inputs = {entry.variable: "_".join((entry.name, *map(str, entry.path))) for entry in tape.inputs}
    return inputs.get(variable) or tape.names.get(variable) or "index"
