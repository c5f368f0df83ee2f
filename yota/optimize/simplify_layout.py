"""Rules of `simplify` for ops that only move elements: reshapes, transposes, broadcasts, trivial sums."""

from __future__ import annotations

from yota.errors import TapeError
from yota.ir.infer import infer
from yota.ir.types import TensorType
from yota.optimize import simplify_reads as reading
from yota.optimize import simplify_slices as runs
from yota.optimize.case import Case, Rule


def unbroadcast(case: Case) -> int | None:
    """An elementwise op on arrays takes what its operands were broadcast from; its result is broadcast if need be."""
    sources = tuple(_source(case, operand) for operand in case.operands)
    if sources == case.operands:
        return None
    try:
        found = infer(case.primitive, tuple(case.type_of(source) for source in sources), case.static)
    except TapeError:
        return None
    if found.dtype != case.type.dtype:
        return None
    small = TensorType(case.type.dtype, found.shape)
    result = case.make(case.primitive, sources, case.static, small)
    if found.shape == case.type.shape:
        return result
    return case.make("broadcast_to", (result,), {"shape": case.type.shape}, case.type)


def _source(case: Case, variable: int) -> int:
    op = case.definition(variable, "broadcast_to")
    if op is not None:
        return _source(case, op.operands[0])
    op = case.definition(variable, "reshape")
    if op is not None and not case.type_of(op.operands[0]).shape:
        return _source(case, op.operands[0])
    if case.type_of(variable).shape:
        value = case.value(variable)
        if value is not None:
            return case.constant(value)
    return variable


def _reshape(case: Case) -> int | None:
    (operand,) = case.operands
    if case.type_of(operand).shape == case.type.shape:
        return case.same(operand)
    inner = case.definition(operand, "reshape")
    if inner is not None:
        return case.make("reshape", inner.operands, case.static, case.type)
    read = case.definition(operand, "getitem")
    if read is not None and not case.type.shape and len(read.operands) == 1:
        place = tuple(0 for _ in case.type_of(operand).shape)
        index = reading.compose(read.keyword("index"), place)
        if index is not None:
            return case.make("getitem", read.operands, {"index": index}, case.type)
    return _of_uniform(case)


def _transpose(case: Case) -> int | None:
    (operand,) = case.operands
    axes = case.keyword("axes")
    if axes == tuple(range(len(axes))):
        return case.same(operand)
    inner = case.definition(operand, "transpose")
    if inner is not None:
        before = inner.keyword("axes")
        composed = tuple(before[axis] for axis in axes)
        return case.make("transpose", inner.operands, {"axes": composed}, case.type)
    return _of_uniform(case)


def _of_uniform(case: Case) -> int | None:
    """Elements of a broadcast scalar, rearranged or read, are a broadcast scalar."""
    inner = case.definition(case.operands[0], "broadcast_to")
    if inner is None or case.type_of(inner.operands[0]).size != 1:
        return None
    (scalar,) = inner.operands
    if case.type_of(scalar).shape:
        scalar = case.make("reshape", (scalar,), {"shape": ()})
    return case.make("broadcast_to", (scalar,), {"shape": case.type.shape}, case.type)


def _broadcast_to(case: Case) -> int | None:
    (operand,) = case.operands
    if case.type_of(operand) == case.type:
        return operand
    inner = case.definition(operand, "broadcast_to")
    if inner is not None:
        return case.make("broadcast_to", inner.operands, case.static, case.type)
    return None


def _sum(case: Case) -> int | None:
    """A sum over no axis."""
    (operand,) = case.operands
    if case.keyword("axis") or case.type_of(operand).dtype != case.type.dtype:
        return None
    return case.same(operand)


def _truth(case: Case) -> int | None:
    """`any` and `all` of single truth values."""
    (operand,) = case.operands
    type = case.type_of(operand)
    return case.same(operand) if not type.shape and type == case.type else None


def _join_of_one(case: Case) -> int | None:
    return case.same(case.operands[0]) if len(case.operands) == 1 else None


def _read_of_uniform(case: Case) -> int | None:
    return _of_uniform(case) if len(case.operands) == 1 and case.type.size else None


EXACT: dict[str, tuple[Rule, ...]] = {
    "reshape": (_reshape,),
    "transpose": (_transpose,),
    "broadcast_to": (_broadcast_to,),
    "sum": (_sum,),
    "any": (_truth,),
    "all": (_truth,),
    "concatenate": (_join_of_one,),
    "getitem": (_read_of_uniform, *reading.RULES, runs.read),
    "scatter": (runs.addition, runs.same_row),
}
