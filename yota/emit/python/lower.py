"""Lowers a schedule of array ops to the plan of a NumPy function."""

from __future__ import annotations

import linecache
import textwrap
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.numpy_literals import Constants, scalar
from yota.emit.python import numpy_calls
from yota.emit.python.accesses import check
from yota.emit.python.blocked_loops import LoopLowering
from yota.emit.python.formatting import wrapped
from yota.emit.python.function_plan import FunctionPlan, Loop, Step, marked
from yota.emit.python.loop_functions import RegionLowering
from yota.emit.python.module_vocabulary import MATH_NAMES, import_lines
from yota.emit.python.numpy_arrays import cuts_bits, product
from yota.emit.python.op_call import Call
from yota.emit.python.storage import StoragePlanner, nested
from yota.emit.python.workspace import Looks
from yota.emit.targets.generated import FIXED, Opening, blocked, heading
from yota.ir.semantics import AccessMap
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.ir.verify import is_on
from yota.optimize.array_writes import distinct, unsigned
from yota.schedule.blocked.units import Unit

_OWN_NAMES = ("np", "deque", "StaleTape", "work", "start", "stop", "piece", "column", "_pool", "_workspace")
_NESTED_WIDTH = 60
"""Longer expressions get a name and a line of their own."""


class Lowering:
    """Lowers one tape; afterwards `constants` holds what the text uses by name without spelling it out.

    What computes ``exact`` is left to NumPy to allocate: the order of a result in memory decides the order of sums.
    ``freed`` says, by the first result of a unit, of which variables the memory is given back after it.
    """

    def __init__(
        self,
        tape: Tape,
        units: Sequence[Unit],
        exact: frozenset[int] = frozenset(),
        freed: Mapping[int, Sequence[int]] | None = None,
        names: Names | None = None,
        opening: Opening = FIXED,
    ) -> None:
        self.tape, self.units, self.exact = tape, units, exact
        self.bitwise = exact
        """What has NumPy's bits; `exact` may be more."""
        self.storage = StoragePlanner(tape, units, exact).plan()
        self.opening = opening
        self.made = tape.inputs[len(tape.inputs) - len(opening.made) :]
        known = dict(zip((each.variable for each in self.made), opening.samples, strict=True))
        self.distinct = distinct(tape, known)
        self.unsigned = unsigned(tape, known) | self.distinct
        self.nested = nested(tape, units, self.storage)
        if is_on():
            check(tape, units, self.storage, self.nested, freed)
        own = (*_OWN_NAMES, *opening.sizes, *(MATH_NAMES if any(op.regions for op in tape.ops) else ()))
        self.names = names or Names(own)
        self.constants = Constants(tape, self.names)
        self.looks = Looks(self.storage, self.names)
        self.texts: dict[int, str] = {}
        self.items: dict[int, dict[int, list[int]]] = {}
        """Of an op of several results, the variables that read each."""
        for op in (member.op for unit in units for member in unit.members):
            if op.access == AccessMap.ITEM:
                self.items.setdefault(op.operands[0], {}).setdefault(op.keyword("index"), []).append(op.result)
        self.imports: dict[str, None] = {}
        self.helpers: list[str] = []
        """Functions that trips of loops call."""
        self.trips: dict[Hashable, tuple[str, tuple[str, ...]]] = {}
        """Their names, and the named sizes that they take, by what they compute."""
        self.in_trips = False
        """Whether numbers that are given may be Python's, which trips return as they are."""
        self._guarded: dict[int, list[int]] = {}
        for index, guard in enumerate(tape.guards):
            self._guarded.setdefault(guard.variable, []).append(index)
        self._last_remark: Any = None

    def plan(self) -> FunctionPlan:
        """The plan."""
        tape = self.tape
        entry = self.names.fresh(tape.name)
        parameters = []
        for item in tape.inputs:
            name = self.names.fresh(".".join((item.name, *map(str, item.path))))
            parameters.append(name)
            self.texts[item.variable] = name
        for each, text in zip(self.made, self.opening.made, strict=True):
            if text in self.opening.sizes:
                self.texts[each.variable] = text
        taken = (*parameters[: len(parameters) - len(self.made)], *self.opening.sizes)
        known = {item.variable for item in tape.inputs} | set(tape.constants)
        guards = self._guards(known & self._guarded.keys())
        steps = [Step(before=(*self.opening.checks, *self._openings(), *guards))]
        for position, unit in enumerate(self.units):
            steps.append(
                LoopLowering(self, position, unit).step() if unit.extent else self._lower_op(unit.members[0].op)
            )
            steps.append(Step(before=tuple(self._guards(unit.results))))
        outputs, copies = self._outputs()
        steps.append(Step(before=tuple(copies)))
        workspaces = self.looks.plan()
        imports = import_lines(self.imports)
        if workspaces or any("deque(" in helper for helper in self.helpers):
            imports = ("from collections import deque" + "\n" * ("" not in imports), *imports)
        noisy = any(
            op.regions or (not op.semantics.quiet and tape.types[op.result].dtype.kind in "fc") for op in tape.ops
        )
        return FunctionPlan(
            banner=blocked(tape, f"{entry}: generated by yota for NumPy.", parameters, self.units),
            imports=tuple(imports),
            constants=wrapped(self.constants.lines, 0),
            workspaces=workspaces,
            decorators=('@np.errstate(all="ignore")',) if noisy else (),
            name=entry,
            parameters=taken,
            steps=tuple(_formatted(step) for step in steps),
            result=", ".join(outputs) if outputs else "()",
            helpers=tuple(self.helpers),
        )

    def _openings(self) -> Iterator[str]:
        """Statements that compute inputs from sizes; both results of one call get their names at once."""
        names = {
            text: self.texts[each.variable]
            for each, text in zip(self.made, self.opening.made, strict=True)
            if text not in self.opening.sizes
        }
        for text, name in names.items():
            if "math." in text:
                self._import("math")
            call, result = text[:-3], text[-3:]
            pair = [names.get(f"{call}[{number}]") for number in (0, 1)]
            if result not in ("[0]", "[1]") or None in pair:
                yield f"{name} = {text}"
            elif result == "[0]":
                yield f"{pair[0]}, {pair[1]} = {call}"

    def name(self, variable: int) -> str:
        """A name for a whole variable: the one it has in the user's source, if any."""
        hint = self.tape.names.get(variable)
        return self.names.fresh(hint) if hint else self.names.numbered("v")

    def call(self, op: Op, operands: tuple[str, ...], rows: tuple[int, str] | None = None) -> Call:
        """``op`` with the texts of its operands."""
        types = tuple(self.tape.types[operand] for operand in op.operands)
        apart = frozenset(number for number, operand in enumerate(op.operands) if operand in self.distinct)
        type, exact = self.tape.types[op.result], op.result in self.exact
        dense = rows is None and not exact and all(operand in self.storage.made for operand in op.operands)
        ones = self.constants.ones if rows is None and not exact else None
        cuts = not exact and cuts_bits(op, self.tape.types)
        plus = frozenset(number for number, operand in enumerate(op.operands) if operand in self.unsigned)
        known = (self.constants.name, self._import, rows, apart, exact, ones, dense, cuts, plus)
        return Call(op, operands, types, type, *known)

    def inside(self, tape: Tape, units: Sequence[Unit], exact: frozenset[int]) -> Lowering:
        """What lowers the body of a loop, beside this one in a module."""
        found = Lowering(tape, units, exact, names=self.names)
        found.trips, found.in_trips = self.trips, True
        return found

    def _import(self, module: str) -> None:
        self.imports[module] = None

    def operand(self, op: Op, number: int) -> str:
        """Text of an operand that is read whole."""
        variable = op.operands[number]
        return self.texts[variable] if variable in self.texts else self.constants.text(variable, op, number)

    def whole_look(self, variable: int) -> str | None:
        """Name of the workspace array of a whole variable."""
        return self.looks.look(variable, self.tape.types[variable].shape)

    def _lower_op(self, op: Op) -> Step:
        if op.access == AccessMap.ITEM and op.result in self.texts:
            return Step()
        operands = tuple(self.operand(op, number) for number in range(len(op.operands)))
        if op.regions:
            return RegionLowering(self, op, operands).step()
        call = product(self.call(op, operands))
        if op.result in self.nested:
            text = numpy_calls.expression(call)
            if len(text) <= _NESTED_WIDTH:
                self.texts[op.result] = text
                return Step()
        remark = self.remark(op)
        source = self.storage.inherits.get(op.result)
        out = self.texts[source] if source is not None else self.whole_look(op.result)
        if out is None:
            out = self._several(op) or self.name(op.result)
            lines = numpy_calls.statements(call, out)
        else:
            lines = numpy_calls.into(call, out, held=out if out in operands else None)
        self.texts[op.result] = out
        return Step(before=tuple(marked((*remark, *lines), op.result)))

    def _several(self, op: Op) -> str:
        """Names of the results of an op that has several; empty for other ops."""
        type = self.tape.types[op.result]
        if not isinstance(type, TupleType):
            return ""
        found = self.items.get(op.result, {})
        for first, *others in found.values():
            self.texts[first] = self.name(first)
            self.texts.update(dict.fromkeys(others, self.texts[first]))
        names = [self.texts[found[number][0]] if number in found else "_" for number in range(len(type.parts))]
        return ", ".join(names) + "," * (len(names) == 1)

    def remark(self, op: Op) -> list[str]:
        """The user's source line as a comment, where it changes."""
        place = op.location
        if place is None or not place.filename or (place.filename, place.line) == self._last_remark:
            return []
        self._last_remark = (place.filename, place.line)
        line = linecache.getline(place.filename, place.line).strip()
        printable = "".join(character if character.isprintable() else " " for character in line)
        return [f"# {printable[:80]}"] if printable else []

    def _guards(self, variables: Iterable[int]) -> list[str]:
        """Checks of the guards whose variables have just been computed."""
        lines = []
        for index in sorted(index for variable in variables for index in self._guarded.get(variable, ())):
            guard = self.tape.guards[index]
            text = self.texts.get(guard.variable) or self.constants.text(guard.variable)
            check = (f"if {self._failed(guard, text)}:", f"    raise StaleTape({self.guard_number(index)}, {text})")
            lines += marked(check, guard.variable)
        return lines

    def guard_number(self, index: int) -> int:
        """What a guard is called where it fails."""
        return index

    def _failed(self, guard: Guard, text: str) -> str:
        expected = guard.expected
        if guard.kind == "bool" or isinstance(expected, bool | np.bool_):
            return f"not {text}" if expected else text
        literal = scalar(expected) if np.ndim(expected) == 0 else None
        if literal is None:
            known = self.constants.name("expected", expected)
            return f"not np.array_equal({text}, {known}, equal_nan=True)"
        if expected != expected:
            return f"{text} == {text}"
        return f"{guard.kind}({text}) != {literal}" if guard.kind in ("int", "float") else f"{text} != {literal}"

    def _outputs(self) -> tuple[list[str], list[str]]:
        """Texts of the results, and the statements that make each an array of its own."""
        texts: list[str] = []
        lines: list[str] = []
        given: set[int] = set()
        for variable in self.tape.outputs:
            type = self.tape.types[variable]
            known = variable in self.tape.constants
            text = self.constants.text(variable) if known else self.texts[variable]
            if not type.shape:
                from_outside = any(item.variable == variable for item in self.tape.inputs)
                texts.append(f"{text}[()]" if from_outside and not type.weak and not self.in_trips else text)
                continue
            found = self.storage.roots[variable]
            if self.storage.lent(variable) or found & given or self._partial(variable):
                name = self.names.fresh("result")
                lines.append(f"{name} = np.array({text})")
                text = name
            given |= found
            texts.append(text)
        return texts, lines

    def _partial(self, variable: int) -> bool:
        """Whether a result looks at an array of another size than its own, or at the real parts of one."""
        (root,) = self.storage.roots[variable]
        whole, type = self.tape.types[root], self.tape.types[variable]
        return whole.size != type.size or whole.dtype != type.dtype


def _formatted(step: Step) -> Step:
    """The step with its long lines broken."""
    loops = tuple(Loop(loop.header, wrapped(loop.lines, 8)) for loop in step.loops)
    return Step(wrapped(step.before, 4), loops, wrapped(step.after, 4))


class KernelDriver(Lowering):
    """Lowers a schedule of kernels, which are ``called`` by names, and of single ops."""

    def __init__(
        self, tape: Tape, steps: Iterable[Any], called: Iterable[str], freed: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        definitions = tape.definitions()
        # Nothing is put into a workspace: kernels and libraries allocate their results.
        super().__init__(tape, [Unit.of(step, definitions) for step in steps], frozenset(tape.types), freed)
        self.called = tuple(dict.fromkeys(called))
        for name in self.called:
            self.names.fresh(name)

    def _banner(
        self, plan: FunctionPlan, targets: str, kernels: str, type: Callable[[int], TensorType]
    ) -> tuple[str, ...]:
        top = heading(self.tape, f"{plan.name}: generated by yota for {targets}.", plan.parameters, type)
        return (*top, *textwrap.wrap(f"{kernels}: {', '.join(self.called) or 'none'}.", 96))

    def _text(self, variable: int) -> str:
        return self.texts[variable] if variable in self.texts else self.constants.text(variable)
