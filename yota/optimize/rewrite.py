"""Common parts of passes: copies of a tape op by op onto a new builder, use counts, and cones of dependence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from yota.ir.catalog import primitive
from yota.ir.primitive import Primitive
from yota.ir.tape import Keywords, Op, Tape, TapeBuilder
from yota.ir.types import TensorType

COPY = primitive("positive")
"""The op that gives its operand, as a result of its own."""


def with_ops(tape: Tape, ops: Iterable[Op], **changes: Any) -> Tape:
    """``tape`` with other ops, and with ``changes`` of other fields; guards follow the ops that they test."""
    ops = tuple(ops)
    guards = changes.pop("guards", tape.guards)
    if guards:
        position = {op.result: number for number, op in enumerate(ops, start=1)}
        guards = tuple([replace(guard, after=position.get(guard.variable, 0)) for guard in guards])
    return replace(tape, ops=ops, guards=guards, **changes)


def users(tape: Tape) -> dict[int, list[Op]]:
    """The ops that read each variable, in order, each once."""
    found: dict[int, list[Op]] = {}
    for op in tape.ops:
        for operand in dict.fromkeys(op.operands):
            found.setdefault(operand, []).append(op)
    return found


def use_counts(tape: Tape) -> dict[int, int]:
    """How often each variable is read by ops, outputs and guards."""
    read = [operand for op in tape.ops for operand in op.operands]
    return Counter([*read, *tape.outputs, *(guard.variable for guard in tape.guards)])


def cone(tape: Tape, roots: Iterable[int]) -> set[int]:
    """All variables that ``roots`` depend on, with themselves."""
    found = set(roots)
    for op in reversed(tape.ops):
        if op.result in found:
            found.update(op.operands)
    return found


def reached(tape: Tape, roots: Iterable[int]) -> set[int]:
    """All variables that depend on ``roots``, with these."""
    found = set(roots)
    for op in tape.ops:
        if not found.isdisjoint(op.operands):
            found.add(op.result)
    return found


def protected(tape: Tape, values: int | None = 1) -> set[int]:
    """The variables that the first outputs (None: all) and the guards depend on; strict mode leaves their ops."""
    return cone(tape, [*tape.outputs[:values], *(guard.variable for guard in tape.guards)])


def with_own_outputs(tape: Tape, unfit: Callable[[Op], bool] | None = None) -> Tape:
    """Each output computed by an op of its own, and by none that is ``unfit``."""
    builder, made, counts = tape.builder(), tape.definitions(), Counter(tape.outputs)
    outputs = [
        each if each in made and counts[each] == 1 and not (unfit and unfit(made[each])) else _copied(builder, each)
        for each in tape.outputs
    ]
    return builder.finish(outputs)


def _copied(builder: TapeBuilder, variable: int) -> int:
    if builder.type(variable).dtype.kind == "b":
        return builder.emit(primitive("logical_or"), (variable, variable))
    return builder.emit(COPY, (variable,))


def rewritten(tape: Tape, replacement: Callable[[Rewriting, Op], int | None]) -> Tape:
    """``tape`` with what ``replacement`` gives in the place of each op; None leaves it as it is."""
    rewriting = Rewriting(tape)
    for op in tape.ops:
        rewriting.builder.location = op.location
        found = replacement(rewriting, op)
        if found is None:
            rewriting.copy(op)
        else:
            rewriting.bind(op.result, found)
    return rewriting.finish()


class Rewriting:
    """A tape under reconstruction.

    tape: the tape that is read; its inputs are taken over at once, its constants when something reads them.
    """

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.builder = TapeBuilder(tape.name)
        self.mapping: dict[int, int] = {}
        for entry in tape.inputs:
            variable = self.builder.input(tape.types[entry.variable], entry.argument, entry.name, entry.path)
            self.bind(entry.variable, variable)

    def __getitem__(self, variable: int) -> int:
        """What stands for ``variable`` of the tape that is read."""
        found = self.mapping.get(variable)
        if found is None:
            found = self.builder.constant_of(self.tape.constants[variable], self.tape.types[variable])
            self.bind(variable, found)
        return found

    def own_constant(self, variable: int) -> int:
        """A new constant of the same value and type."""
        found = self.builder.variable(self.tape.types[variable])
        self.builder.constants[found] = self.tape.constants[variable]
        if variable in self.tape.names:
            self.builder.names[found] = self.tape.names[variable]
        return found

    def bind(self, old: int, variable: int) -> None:
        """Let ``variable`` stand for ``old``."""
        self.mapping[old] = variable
        if old in self.tape.names:
            self.builder.names.setdefault(variable, self.tape.names[old])

    def operands(self, op: Op) -> tuple[int, ...]:
        """What stands for the operands of ``op``."""
        mapping = self.mapping
        return tuple([mapping[operand] if operand in mapping else self[operand] for operand in op.operands])

    def copy(self, op: Op) -> int:
        """Take ``op`` over as it is."""
        self.builder.location = op.location
        found = self.builder.emit(op.primitive, self.operands(op), op.static, self.tape.types[op.result])
        self.bind(op.result, found)
        return found

    def emit(
        self, name: str | Primitive, operands: Iterable[int], static: Keywords = (), type: TensorType | None = None
    ) -> int:
        """Append an op on variables of the tape that is being made."""
        return self.builder.emit(primitive(name) if isinstance(name, str) else name, operands, static, type)

    def type(self, variable: int) -> TensorType:
        """Type of a variable of the tape that is being made."""
        return self.builder.types[variable]

    def definition(self, variable: int) -> Op | None:
        """The op that defines a variable of the tape that is being made."""
        return self.builder.definition(variable)

    def finish(self, outputs: Iterable[int] | None = None) -> Tape:
        """The tape that was made."""
        results = [self[variable] for variable in self.tape.outputs] if outputs is None else list(outputs)
        guarded = [self[guard.variable] for guard in self.tape.guards]
        position = {op.result: number for number, op in enumerate(self.builder.ops, start=1)}
        self.builder.guards = [
            replace(guard, variable=variable, after=position.get(variable, 0))
            for variable, guard in zip(guarded, self.tape.guards, strict=True)
        ]
        return self.builder.finish(results)
