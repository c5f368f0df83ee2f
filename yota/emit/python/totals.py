"""Lowers what a loop completes: sums over the blocked axis, shifted pieces, and the arrays that it fills."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from yota.emit.numpy_literals import brackets, dtype_argument, shape_text
from yota.emit.python import numpy_arrays, numpy_calls
from yota.emit.python.op_call import Call
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op
from yota.optimize.array_writes import is_view
from yota.schedule.blocked.units import ROWS, Member, in_order, landing

if TYPE_CHECKING:
    from yota.emit.python.blocked_loops import LoopLowering


def _filling(loop: LoopLowering, variable: int) -> str | None:
    """What an array must hold before the loop adds to it."""
    if variable in loop.local:
        return None
    op = next(member.op for member in loop.unit.members if member.op.result == variable)
    dtype = loop.types[variable].dtype
    fold = op.semantics.fold or "add"
    neutral = getattr(np, fold).identity
    if neutral is not None:
        return str(neutral)
    if dtype.kind == "f":
        return "-np.inf" if fold == "maximum" else "np.inf"
    if dtype.kind == "b":
        return str(fold == "minimum")
    bounds = np.iinfo(dtype)
    return str(bounds.min if fold == "maximum" else bounds.max)


def make_room(loop: LoopLowering, variable: int) -> None:
    """Name, and if need be allocate, an array that the loop fills."""
    type = loop.types[variable]
    if variable not in loop.local and type.size == 1:
        return
    name = loop.lowering.whole_look(variable)
    fill = _filling(loop, variable)
    first = loop.firsts.get(variable)
    if first is not None:
        fill = None
    if name is None:
        name = loop.lowering.name(variable)
        shape = shape_text(type.shape)
        dtype = dtype_argument(type.dtype)
        if fill is None:
            loop.before.append(f"{name} = np.empty({shape}{dtype})")
        elif fill == "0":
            loop.before.append(f"{name} = np.zeros({shape}{dtype})")
        else:
            loop.before.append(f"{name} = np.full({shape}, {fill}{dtype or ', np.float64'})")
    elif fill is not None:
        loop.before.append(f"{name}.fill({fill})")
    loop.lowering.texts[variable] = name
    if first is not None:
        ahead, extent = ":, " * first.axis, type.shape[first.axis]
        end = first.shift + loop.unit.extent
        loop.before += [f"{name}[{ahead}:{first.shift}] = 0"] if first.shift else []
        loop.before += [f"{name}[{ahead}{end}:] = 0"] if end < extent else []


def lower(loop: LoopLowering, member: Member) -> None:
    """An op whose result is complete after the loop."""
    op, type = member.op, loop.types[member.op.result]
    call = loop.call(member)
    if op.access == AccessMap.SCATTER:
        _lower_scatter(loop, member, call)
    elif type.size == 1:
        _lower_number(loop, op, call)
    else:
        out, text = loop.lowering.texts[op.result], _column_sums(loop, member, call) or numpy_calls.expression(call)
        merge = op.semantics.fold
        if merge in ("add", "multiply"):
            loop.lines.append(f"{out} {'+' if merge == 'add' else '*'}= {text}")
        else:
            loop.lines.append(f"np.{merge}({out}, {text}, out={out})")


def _column_sums(loop: LoopLowering, member: Member, call: Call) -> str | None:
    """Sums of the columns of a piece that the loop itself makes, row by row."""
    (operand,) = member.op.operands[:1]
    made = any(each.op.result == operand and not is_view(each.op, loop.types) for each in loop.unit.members)
    if not made or loop.local.get(operand) != 0 or loop.unit.layout != ROWS:
        return None
    extent, block = loop.unit.extent, loop.unit.block
    each = math.prod(loop.types[operand].shape[1:-1])
    cut = "[: stop - start]" if each == 1 else f"[: (stop - start) * {each}]"
    call = replace(call, ones=loop.lowering.constants.ones, dense=True)
    return numpy_arrays.column_sums(call, block * each, cut if extent % block else "")


def _lower_number(loop: LoopLowering, op: Op, call: Call) -> None:
    type = loop.types[op.result]
    name = loop.lowering.name(op.result)
    function = f"np.{op.semantics.fold}.reduce"
    flat = "" if call.types[0].ndim == 1 else ", axis=None"
    total = f"{function}({call.operands[0]}{flat})"
    if numpy_arrays.is_count(call):
        total = f"np.count_nonzero({call.operands[0]})"
    if loop.single:
        _bind_number(loop, op.result, name, total, loop.lines)
        return
    # One partial result for each piece, then the same reduction of those: as accurate as pairwise sums.
    parts = loop.lowering.names.fresh(f"{name}_parts")
    count = -(-loop.unit.extent // loop.unit.block)
    loop.before.append(f"{parts} = np.empty({count}{dtype_argument(type.dtype)})")
    loop.lines.append(f"{parts}[piece] = {total}")
    loop.counted = True
    _bind_number(loop, op.result, name, f"{function}({parts})", loop.after)


def _bind_number(loop: LoopLowering, variable: int, name: str, total: str, lines: list[str]) -> None:
    shape = loop.types[variable].shape
    lines.append(f"{name} = np.full({shape_text(shape)}, {total})" if shape else f"{name} = {total}")
    loop.lowering.texts[variable] = name


def _lower_scatter(loop: LoopLowering, member: Member, call: Call) -> None:
    """Pieces added into a longer array, each at its own shift."""
    first = loop.firsts[member.op.result]
    for number in in_order(member.op, first):
        place, text = landing_place(loop, member, number), call.operands[number]
        if first is None or number != first.number:
            loop.lines.append(f"{place} += {text}")
        elif first.direct is None:
            loop.lines.append(f"{place} = {text}")


def landing_place(loop: LoopLowering, member: Member, number: int) -> str:
    """Where a shifted piece goes."""
    read = member.placement.reads[number]
    assert read is not None
    index = member.op.keyword("indices")[number]
    axis, shift = landing(index, read)
    cut = f"start + {shift} : stop + {shift}" if shift else "start:stop"
    if loop.single:
        cut = f"{shift or ''}:{shift + loop.unit.extent}"
    shape = loop.types[member.op.result].shape
    return loop.lowering.texts[member.op.result] + brackets(index, shape, (), (axis, cut))
