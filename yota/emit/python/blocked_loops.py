"""Lowers one fusion group to a loop over pieces of one axis."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from yota.emit.python import numpy_calls, totals
from yota.emit.python.function_plan import Loop, Step, marked
from yota.emit.python.numpy_arrays import view
from yota.emit.python.op_call import Call
from yota.emit.python.workspace import turned
from yota.ir.tape import Op
from yota.optimize.array_writes import is_view
from yota.rules.language.statics import inverse
from yota.schedule.blocked.units import Member, Unit, copied_whole, first_pieces

if TYPE_CHECKING:
    from yota.emit.python.lower import Lowering


class LoopLowering:
    """A loop under construction: what comes before it, its body, and what comes after."""

    def __init__(self, lowering: Lowering, position: int, unit: Unit) -> None:
        self.lowering, self.position, self.unit = lowering, position, unit
        self.types = lowering.tape.types
        self.single = unit.block == unit.extent
        self.rows = str(unit.extent) if self.single else "stop - start"
        self.local = unit.local
        self.before: list[str] = []
        self.reads: list[str] = []
        self.lines: list[str] = []
        self.after: list[str] = []
        self.pieces: dict[int, str] = {}
        self.cuts: dict[tuple[int, int], str] = {}
        self.scratch: dict[str, int] = {}
        self.copies: dict[tuple[int, tuple[int, ...]], str] = {}
        self.counted = False
        self.uses = Counter[int]()
        self.cut_uses = Counter[tuple[int, int]]()
        self.firsts = first_pieces(unit, self.types, lowering.storage.roots)
        self.direct: dict[int, str] = {}
        for member in unit.members:
            for operand, axis in zip(member.op.operands, member.placement.reads, strict=True):
                self.uses[operand] += 1
                if axis is not None:
                    self.cut_uses[operand, axis] += 1

    def step(self) -> Step:
        """Lower all members: the loop, with what comes before and after it."""
        for variable in self.unit.results:
            known = len(self.before)
            totals.make_room(self, variable)
            self.before[known:] = marked(self.before[known:], variable)
        for member in self.unit.members:
            first = self.firsts.get(member.op.result)
            if first is not None and first.direct is not None:
                self.direct[first.direct] = totals.landing_place(self, member, first.number)
        for member in self.unit.members:
            self._lower(member)
        extent, block = self.unit.extent, self.unit.block
        if self.single:
            return Step((*self.before, *self.reads, *self.lines, *self.after))
        rows = f"range(0, {extent}, {block})"
        header = f"for start in {rows}:"
        if self.counted:
            header = f"for piece, start in enumerate({rows}):"
        if extent % block:
            head = [f"stop = min(start + {block}, {extent})", *self._shortened()]
        else:
            head = [f"stop = start + {block}"]
        loop = Loop(header, (*head, *self.reads, *self.lines))
        return Step(tuple(self.before), (loop,), tuple(self.after))

    def _lower(self, member: Member) -> None:
        """Lower one member; the lines that it adds know what they compute."""
        parts = (self.before, self.reads, self.lines, self.after)
        known = [len(part) for part in parts]
        if not is_view(member.op, self.types):
            self.lines += self.lowering.remark(member.op)
        if self.local.get(member.op.result) is not None:
            self._lower_row(member)
        else:
            totals.lower(self, member)
        for part, count in zip(parts, known, strict=True):
            part[count:] = marked(part[count:], member.op.result)

    def _shortened(self) -> list[str]:
        """The last piece is shorter than the others."""
        if not self.scratch:
            return []
        lines = [f"if stop == {self.unit.extent}:"]
        for name, axis in self.scratch.items():
            lines.append(f"    {name} = {name}[{':, ' * axis}: stop - start]")
        return lines

    def call(self, member: Member) -> Call:
        """A member with the texts of its operands."""
        texts = []
        for number, axis in enumerate(member.placement.reads):
            texts.append(self._operand(member.op, number, axis))
        axis = member.placement.axis
        rows = None if axis is None else (axis, self.rows)
        return replace(self.lowering.call(member.op, tuple(texts), rows), ones=None)

    def _operand(self, op: Op, number: int, axis: int | None) -> str:
        operand = op.operands[number]
        if operand in self.local:
            return self.pieces[operand]
        order = self.unit.layout.order(self.types[operand], axis)
        if axis is None:
            return self._in_order(op, number, order) if order else self.lowering.operand(op, number)
        key = (operand, axis)
        if key not in self.cuts:
            small = order is not None and copied_whole(self.types[operand], self.unit, self.types)
            name = self._in_order(op, number, order) if order and small else self.lowering.operand(op, number)
            text = name + self._cut(axis)
            if order is not None and not small:
                text = self._piece_in_order(operand, axis, text, order)
            elif self.cut_uses[key] > 1 and not self.single:
                short = self.lowering.names.fresh(f"{name}_rows")
                self.reads.append(f"{short} = {text}")
                text = short
            self.cuts[key] = text
        return self.cuts[key]

    def _cut(self, axis: int) -> str:
        """Brackets that take a piece along ``axis``."""
        return "" if self.single else f"[{':, ' * axis}start:stop]"

    def _in_order(self, op: Op, number: int, order: tuple[int, ...]) -> str:
        """A whole operand, copied ahead of the loop into the loop's layout."""
        operand = op.operands[number]
        if (operand, order) not in self.copies:
            name = self.lowering.operand(op, number)
            short = self.lowering.names.fresh(f"{name}_turned")
            # "C" keeps NumPy from copying the order that it finds.
            text = turned(f'{turned(name, order)}.copy("C")', inverse(order))
            self.before.append(f"{short} = {text}")
            self.copies[operand, order] = short
        return self.copies[operand, order]

    def _piece_in_order(self, operand: int, axis: int, text: str, order: tuple[int, ...]) -> str:
        """A piece of an operand, copied into the loop's layout."""
        shape = list(self.types[operand].shape)
        shape[axis] = self.unit.block
        look = self.lowering.looks.look(
            (self.position, "read", operand, axis), tuple(shape), (self.position, axis), order
        )
        assert look is not None
        self.scratch[look] = axis
        (self.lines if self.single else self.reads).append(f"np.copyto({look}, {text})")
        return look

    def _lower_row(self, member: Member) -> None:
        """An op whose result exists in pieces."""
        op = member.op
        call = self.call(member)
        if is_view(op, self.types):
            text = view(call)
            if self.uses[op.result] > 1:
                name = self.lowering.names.numbered("v")
                self.lines.append(f"{name} = {text}")
                text = name
            self.pieces[op.result] = text
            return
        axis = self.local[op.result]
        if op.result in self.direct:
            out = self.lowering.names.numbered("v")
            self.lines.append(f"{out} = {self.direct[op.result]}")
        elif op.result in self.unit.stored and self.single:
            out = self.lowering.texts[op.result]
        elif op.result in self.unit.stored:
            out = self.lowering.names.fresh(f"{self.lowering.texts[op.result]}_rows")
            self.reads.append(f"{out} = {self.lowering.texts[op.result]}{self._cut(axis)}")
        else:
            shape = list(self.types[op.result].shape)
            shape[axis] = self.unit.block
            order = self.unit.layout.order(self.types[op.result], axis)
            look = self.lowering.looks.look((self.position, op.result), tuple(shape), (self.position, axis), order)
            if look is None:
                name = self.lowering.names.numbered("v")
                self.lines += numpy_calls.statements(call, name)
                self.pieces[op.result] = name
                return
            out = look
            self.scratch[out] = axis
        self.pieces[op.result] = out
        if numpy_calls.has_out(op, self.types):
            held = out if out in call.operands else None
            self.lines += numpy_calls.into(call, out, held=held)
        else:
            self.lines.append(f"{out}[...] = {numpy_calls.expression(call)}")
