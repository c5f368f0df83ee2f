"""Rules of `simplify` for writes into arrays: what is written over, written back, or put where zeros were written."""

from __future__ import annotations

from yota.ir.indexing import pattern_shape
from yota.ir.tape import Op
from yota.passes.case import Case, Rule
from yota.passes.writes import covers, is_basic

__all__ = ["EXACT", "LOOSE"]


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
        if case.type_of(piece).shape != pattern_shape(index, (), case.type.shape) or not _alike(case, write, piece):
            continue
        whole = case.make("setitem", (write.operands[0], piece), write.static, case.type)
        rest = pieces.operands[:filled] + pieces.operands[filled + 1 :]
        if not rest:
            return whole
        static = {**dict(pieces.static), "indices": indices[:filled] + indices[filled + 1 :]}
        return case.make("add", (whole, case.make("scatter", rest, static, case.type)), (), case.type)
    return None


def _alike(case: Case, write: Op, piece: int) -> bool:
    """Whether all that is added has one dtype."""
    types = (case.type_of(variable) for variable in (*case.operands, write.operands[0], piece))
    return all(type.dtype == case.type.dtype for type in types)


EXACT: dict[str, tuple[Rule, ...]] = {"setitem": (_written_over, _written_back)}

LOOSE: dict[str, tuple[Rule, ...]] = {"add": (_put_at_zeros,)}
