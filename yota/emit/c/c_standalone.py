"""A tape as a C function with no dependency but libm: loops in their order, with what lies between them in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from yota.emit.c.c_plan import KernelPlan, Piece, Tables
from yota.emit.c.frame import result_hint
from yota.emit.c.inline_loops import LoopWriter, with_constants
from yota.emit.c.kernels import Kernel, plan_kernel, with_sizes
from yota.emit.c.lines import Needs
from yota.emit.c.standalone_schedule import standalone_schedule
from yota.emit.c.statements import (
    OUT_OF_BOUNDS,
    Sizes,
    called,
    calling,
    failed,
    framed,
    is_called,
    is_ordered,
    is_sort,
    refusal,
    sorting,
    writing,
)
from yota.emit.language import filled
from yota.emit.names import Names
from yota.emit.python.accesses import check_steps
from yota.emit.tree import Assign, Copy, Fill, Leave, Memory, Room, Scope, Statement, Unused, Variable
from yota.errors import CodegenError
from yota.ir.printing import operations
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, is_uniform
from yota.ir.verify import is_on
from yota.optimize.rewrite import cone
from yota.schedule.nests.groups import Group, Schedule
from yota.schedule.nests.index_patterns import is_places


@dataclass(slots=True)
class Shared:
    """What all functions of one file have in common."""

    names: Names
    needs: Needs
    tables: Tables
    kernels: dict[KernelPlan, str] = field(default_factory=dict)
    """Names of kernels: functions that do the same share one."""


@dataclass(frozen=True, slots=True)
class Body:
    """A function's statements, and the loops that it calls.

    kernels: loops that stand in functions of their own.
    looks: whether it looks at indices.
    memory: numbers of elements of the arrays on the heap.
    """

    kernels: tuple[KernelPlan, ...]
    lines: tuple[str, ...]
    pieces: tuple[Piece, ...]
    allocates: bool
    operations: str
    looks: bool = False
    memory: tuple[int, ...] = ()


def body_of(
    tape: Tape,
    name: str,
    inputs: Sequence[str],
    results: Sequence[str],
    shared: Shared,
    *,
    strict: bool = False,
    sizes: Sizes | None = None,
) -> Body:
    """The body of the C function ``name`` of ``inputs`` and ``results`` that computes a tape's outputs."""
    sizes = sizes or Sizes()
    plan = standalone_schedule(tape, shared.needs.language, strict)
    return _Function(plan, name, inputs, results, shared, sizes, strict).body()


def statements_of(
    tape: Tape, name: str, inputs: Sequence[str], results: Sequence[str], shared: Shared, sizes: Sizes
) -> tuple[list[Statement], list[Statement], list[KernelPlan]]:
    """Definitions, what a function does that cannot fail, and kernels that it calls."""
    plan = standalone_schedule(tape, shared.needs.language, False)
    writer = _Function(plan, name, inputs, results, shared, sizes, False)
    found = writer.statements()
    if writer.looks:
        raise CodegenError(
            f"{tape.name} computes indices, which {writer.language.name} code without a status cannot check"
        )
    return (*found, writer.kernels)


class _Function:
    """Writes a function, or the body of a loop of an ``outer`` one: its results are variables of that one."""

    def __init__(
        self,
        plan: Schedule,
        name: str,
        inputs: Sequence[str],
        results: Sequence[str],
        shared: Shared,
        sizes: Sizes,
        strict: bool,
        outer: _Function | None = None,
    ) -> None:
        self.outer = outer
        self.plan, self.name, self.shared, self.sizes, self.strict = plan, name, shared, sizes, strict
        self.inputs, self.language, tape = inputs, shared.needs.language, plan.tape
        known = [*inputs, *results, *sizes.names]
        self.names: Names = outer.names if outer else self.language.names(name, known)
        self.tape, self.texts = tape, dict(zip((each.variable for each in tape.inputs), inputs, strict=True))
        self.used: set[str] = set()
        self.pieces: tuple[Piece, ...] = ()
        self.looks = False
        self.memory: list[int] = []
        self.own: dict[str, TensorType] = {}
        """Variables by name."""
        self.spare: dict[int, str] = {}
        self.kernels: list[KernelPlan] = outer.kernels if outer else []
        self.done: list[Op | Kernel] = []
        self.results = list(zip(tape.outputs, results, strict=True))
        self.targets: dict[int, str] = {}
        for variable, text in self.results:
            if variable not in self.texts and variable not in tape.constants:
                self.targets.setdefault(variable, text)

    def body(self) -> Body:
        definitions, lines = self.statements()
        unused = [Unused(text) for text in self.inputs if text not in self.used]
        counts = ", ".join(f"{count} {name}" for name, count in operations(self.tape).items())
        heap = [each.name for each in definitions if isinstance(each, Memory)]
        printed = self.language.printed
        if self.language.inlines:
            statements = self.language.scoped([*definitions, *lines])
        else:
            statements = framed(printed(definitions), heap, printed(lines))
        statements = [*printed(unused), *statements]
        memory = tuple(self.memory)
        return Body(tuple(self.kernels), tuple(statements), self.pieces, bool(heap), counts, self.looks, memory)

    def statements(self) -> tuple[list[Statement], list[Statement]]:
        """Definitions, and what the function does."""
        # Indices are looked at first: nothing is written if one is out of bounds.
        wanted = cone(self.tape, (op.result for op in self.tape.ops if is_places(op)))
        steps = [step for step in self.plan.steps if isinstance(step, Group) or step.result not in self.texts]
        steps.sort(key=lambda step: wanted.isdisjoint(_variables(step)))
        self._declare(steps)
        lines = self._guards({entry.variable for entry in self.tape.inputs} | set(self.tape.constants))
        looks = [step for step in steps if isinstance(step, Op) and is_places(step)]
        last = steps[-1] if steps else None
        alone = len(steps) == len(looks) + 1 and len(self.own) == len(looks)
        if alone and isinstance(last, Group) and (self.outer is None or self.language.inlines):
            # The only loops that there are stand in the function itself.
            lines += [line for step in looks for line in self._op(step)]
            kernel = self._kernel(last, self.name, inline=True)
            self.done = [*looks, kernel]
            lines += self._inlined(last, kernel.plan, alone=True)
        else:
            lines += [line for step in steps for line in self._step(step)]
        if is_on():
            check_steps(self.tape, self.done)
        lines += self._copies()
        self.looks |= bool(looks)
        return [self._memory(name, type) for name, type in self.own.items()], lines

    def _allocated(self, kind: str, name: str, count: int) -> Memory:
        """The definition of an array on the heap: some C libraries have no memory of no bytes."""
        self.memory.append(count)
        room = self.sizes.may_be_none(count)
        # Positions are checked in a loop that a compiler may put in place, and then takes for one that may not run.
        return Memory(kind, name, count, room, room and kind == self.language.type(np.dtype(np.int64)))

    def _inlined(self, group: Group, plan: KernelPlan, *, alone: bool) -> list[Statement]:
        """The statements of one kernel; unless it is ``alone``, its names are its own."""
        self.used.update(argument.name for argument in plan.arguments if argument.used)
        self.pieces = plan.pieces
        remarks = plan.remarks if group.extents else ()  # straight code has its own
        lines = plan.lines if alone else (Scope(plan.lines),)
        return [*remarks, *lines, *self._guards({root.variable for root in group.roots})]

    def _declare(self, steps: Sequence[Group | Op]) -> None:
        """Name what the function computes."""
        for step in steps:
            if isinstance(step, Op) and is_sort(self.tape, step):
                name = self.spare[step.result] = self.names.fresh("spare")
                count = 2 * self.tape.types[step.result].shape[step.keyword("axis")]
                self._array(name, TensorType(np.dtype(np.int64), (count,)))
            for variable in [] if isinstance(step, Op) and step.regions else _variables(step):
                type = self.tape.types[variable]
                if variable in self.targets:
                    text = self.targets[variable]
                    self.texts[variable] = text if type.shape else self._number(text)
                    continue
                name = self.texts[variable] = self.names.fresh(result_hint(self.tape, variable))
                if type.shape:
                    self._array(name, type)
                else:
                    self.own[name] = type

    def _number(self, result: str) -> str:
        """A result that is a number."""
        return result if self.outer else self.language.result(result)

    def _array(self, name: str, type: TensorType) -> None:
        """Declare an array, once for all trips of a loop."""
        if self.outer:
            self.outer._array(name, type)
        else:
            self.own[name] = type

    def _memory(self, name: str, type: TensorType) -> Statement:
        kind = self.language.type(type.dtype)
        if not type.shape:
            return Variable(kind, name)
        if int(type.size) * type.dtype.itemsize <= self.sizes.on_stack:
            return Room(kind, name, type.size)
        return self._allocated(kind, name, type.size)

    def _exact(self) -> Collection[int]:
        """What the value is computed from, which has NumPy's bits under ``strict``."""
        return cone(self.tape, self.tape.outputs[:1])

    def _loop(self, op: Op) -> Statement:
        """The statements of a loop."""
        items, (region, operands) = self._items(op), with_constants(self.tape, op)
        types = region.types()
        is_known = all(self.language.is_known(type.dtype) and type.size for type in types)
        if not is_known or (self.strict and op.result in self._exact()):
            raise CodegenError(refusal(self.tape, op, self.language))
        arrays = range(region.counted, region.counted + region.carries)
        given = [
            "" if number in arrays and self._is_uniform(operand) else self._text(operand)
            for number, operand in enumerate(operands)
        ]
        self.used.update(given)
        results = [self.texts[items[each]] if each in items else None for each in range(len(types))]
        names, language = self.names, self.language

        def start(name: str, number: int) -> Statement:
            return self._copied(operands[number], name)

        return LoopWriter(region, given, results, language, names, self._trip, self._array, start).run()

    def _is_uniform(self, variable: int) -> bool:
        """Whether all elements of a constant array are the same."""
        constant = self.tape.constants.get(variable)
        return bool(self.tape.types[variable].shape) and constant is not None and is_uniform(constant)

    def _copied(self, variable: int, target: str) -> Statement:
        """The statement that gives an array the elements of another; of one that is the same everywhere the number."""
        type = self.tape.types[variable]
        if self._is_uniform(variable):
            number = self.language.literal(np.asarray(self.tape.constants[variable]).reshape(-1)[0], type.dtype)
            return Fill(target, type.size, number, False)
        source = self._text(variable)
        self.used.add(source)
        return Copy(target, source, type.size)

    def _trip(self, tape: Tape, inputs: Sequence[str], results: Sequence[str]) -> list[Statement]:
        """The statements of a trip of a loop."""
        plan = standalone_schedule(tape, self.language, False)
        inner = _Function(plan, self.name, inputs, results, self.shared, self.sizes, False, self)
        definitions, lines = inner.statements()
        self.used |= inner.used
        self.looks |= inner.looks
        return [*definitions, *lines]

    def _items(self, op: Op) -> dict[int, int]:
        """The variables of the results of an op that gives several."""
        return {each.keyword("index"): each.result for each in self.tape.ops if each.operands[:1] == (op.result,)}

    def _kernel(self, group: Group, name: str, *, inline: bool) -> Kernel:
        known = {}
        if inline:
            known = {variable: text for variable, text in self.texts.items() if not text.startswith("*")}
            known |= {root.variable: self.targets.get(root.variable, self.texts[root.variable]) for root in group.roots}
            tables = (each for each in self.tape.constants if self.tape.types[each].shape and each in self.plan.leaves)
            known |= {each: self._table(each) for each in tables}
        needs, reserved = self.shared.needs, self.sizes.names
        return plan_kernel(self.plan, group, name, needs, known=known, whole=True, reserved=reserved)

    def _table(self, variable: int) -> str:
        value = np.asarray(self.tape.constants[variable])
        return self.shared.tables.name(self.tape.names.get(variable, self.name), value)

    def _step(self, step: Group | Op) -> Sequence[Statement]:
        if isinstance(step, Op):
            self.done.append(step)
            if step.regions:
                return [self._loop(step)]
            return [*self._op(step), *self._guards({step.result})]
        name = self.shared.names.derived(self.name, f"step{len(self.kernels)}")
        kernel = self._kernel(step, name, inline=self.language.inlines)
        self.done.append(kernel)
        if self.language.inlines:
            return self._inlined(step, kernel.plan, alone=False)
        made, taken = with_sizes(kernel.plan, self.sizes.names)
        known = self.shared.kernels.setdefault(replace(made, name="", runs="", extent=0), name)
        if known == name:
            self.kernels.append(replace(made, extent=0))
        arguments = [*taken, *(self._text(variable) for variable in kernel.inputs)]
        self.used.update(arguments)
        arguments += map(self._pointer, _variables(step))
        return [*filled(f"{known}({', '.join(arguments)});"), *self._guards(set(_variables(step)))]

    def _op(self, op: Op) -> Sequence[Statement]:
        """What is no loop over points."""
        if op.access == AccessMap.ITEM:
            return []
        if is_called(self.tape, op):
            return self._call(op)
        known = op.access == AccessMap.RESHAPE or is_places(op) or is_ordered(self.tape, op)
        if not known:
            raise CodegenError(refusal(self.tape, op, self.language))
        if op.access == AccessMap.WRITE:
            start = self._copied(op.operands[0], self.texts[op.result])
            texts = [self._text(each) for each in op.operands[1:]]
            self.used.update(texts)
            written = writing(self.tape, op, texts, self.texts[op.result], self.language, self.names.fresh("at"))
            return [start, written]
        source, target = self._text(op.operands[0]), self.texts[op.result]
        self.used.add(source)
        if is_places(op):
            return self._look(op)
        if is_sort(self.tape, op):
            return sorting(self.tape, op, source, target, self.spare[op.result], self.shared.needs)
        return [Copy(target, source, self.tape.types[op.result].size)]

    def _call(self, op: Op) -> list[str]:
        if self.strict and self.tape.types[op.result].dtype.kind == "f" and op.result in self._exact():
            raise CodegenError(refusal(self.tape, op, self.language))
        sources = [self._source(operand) for operand in op.operands]
        return calling(self.tape, op, sources, self._pointer(op.result), self.shared.needs)

    def _source(self, variable: int) -> str:
        """A pointer to an operand."""
        text, type = self._text(variable), self.tape.types[variable]
        self.used.add(text)
        return text if type.shape else f"(const {self.language.type(type.dtype)}[]){{{text}}}"

    def _pointer(self, variable: int) -> str:
        """A pointer to what the function computes."""
        text = self.texts[variable]
        return text if self.tape.types[variable].shape else text[1:] if text[0] == "*" else f"&{text}"

    def _look(self, op: Op) -> list[Statement]:
        type, extent = self.tape.types[op.operands[0]], self.language.whole(op.keyword("extent"))
        if self.language.inlines and not type.shape:
            target, source = self.texts[op.result], self._text(op.operands[0])
            self.used.add(source)
            outside = self.language.applied("less", np.dtype(np.int64), target, self.language.whole(0))
            return [Assign(target, f"place_from({source}, {extent})"), Leave(outside, OUT_OF_BOUNDS)]
        function = called("places_from", self.tape, op, self.shared.needs)
        given = [self._pointer(op.result), self._source(op.operands[0]), self.language.whole(type.size), extent]
        call = f"{function}({', '.join(given)})"
        return [Leave(self.language.applied("logical_not", np.dtype(bool), call), OUT_OF_BOUNDS)]

    def _text(self, variable: int) -> str:
        if variable in self.texts:
            return self.texts[variable]
        if self.tape.types[variable].shape:
            return self._table(variable)
        type = self.tape.types[variable]
        return self.language.literal(self.tape.constants[variable], type.dtype)

    def _guards(self, variables: set[int]) -> list[Statement]:
        """Decisions that the function took when it was recorded."""
        lines: list[Statement] = []
        for number, guard in enumerate(self.tape.guards, start=1):
            if guard.variable in variables:
                text = self._text(guard.variable)
                self.used.add(text)
                lines.append(Leave(failed(self.tape, guard, text, self.language), number))
        return lines

    def _copies(self) -> list[Statement]:
        """Results that are arguments, constants, or other results."""
        lines: list[Statement] = []
        given: set[int] = set()
        for variable, text in self.results:
            fresh = self.targets.get(variable) == text and variable not in given
            given.add(variable)
            if fresh:
                continue
            source = self._text(variable)
            self.used.add(source)
            if self.tape.types[variable].shape:
                lines.append(Copy(text, source, self.tape.types[variable].size))
            else:
                lines.append(Assign(self._number(text), source))
        return lines


def _variables(step: Group | Op) -> list[int]:
    return [root.variable for root in step.roots] if isinstance(step, Group) else [step.result]
