"""Lowers a loop of a tape to a Python loop around a function that makes one trip."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.emit.numpy_literals import dtype_argument, dtype_text, shape_text
from yota.emit.numpy_literals import scalar as scalar_text
from yota.emit.python import scalar
from yota.emit.python.function_plan import FunctionPlan, Loop, Step, marked
from yota.emit.python.op_call import owner
from yota.emit.render import render
from yota.ir.extents import extents_in
from yota.ir.regions import Region
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import cone
from yota.schedule.blocked.fuse import fuse
from yota.schedule.target_forms import as_counts, as_deposits, as_products

if TYPE_CHECKING:
    from yota.emit.python.lower import Lowering

_WORD = re.compile(r"[A-Za-z_]\w*")
_LONGEST_FACTORED = 4000
"""Ops of a trip above which it is not factored: in derivatives of long code that saves 1 to 3 % of them."""
_PLAIN = {"f": "float", "i": "int", "b": "bool"}


def arranged(tape: Tape, exact: frozenset[int]) -> Tape:
    """``tape`` with what NumPy does faster in other words."""
    return as_deposits(as_counts(as_products(tape, exact), exact), exact)


def is_plain(region: Region) -> bool:
    """Whether a trip computes with numbers alone, which are Python's then."""
    starts = {entry.variable for entry in region.body.inputs}
    outputs = enumerate(region.body.outputs)
    made = replace(region.body, outputs=tuple(each for k, each in outputs if k < region.carries or each not in starts))
    return scalar.is_scalar(made) and scalar.is_fast(made)


class RegionLowering:
    """Writes one loop.

    Numbers are Python's where the body is one of numbers alone, which is several times as fast as NumPy's.
    """

    def __init__(self, lowering: Lowering, op: Op, operands: Sequence[str]) -> None:
        self.lowering, self.op = lowering, op
        region: Region = op.keyword("region")
        self.region, self.names = region, lowering.names
        given = list(operands)
        self.count = given.pop(0) if region.counted else str(region.trips)
        if region.counted and region.trips is not None:
            # A guard refuses more trips than there is room for.
            self.count = f"min({self.count}, {region.trips})"
        self.initial, self.rows = given[: region.carries], given[region.carries : region.carries + region.slices]
        self.fixed = given[region.carries + region.slices :]
        self.exact = op.result in lowering.bitwise
        self.plain = is_plain(region)

    def step(self) -> Step:
        """Statements ahead of the loop, the loop, and those after it."""
        found = self._accumulated()
        if found is not None:
            return found
        region, body = self.region, self.region.body
        items = self.lowering.items.get(self.op.result, {})
        types = [body.types[each] for each in body.outputs]
        names = [self._name(items.get(number, ())) for number in range(len(types))]
        before = [
            f"{name} = {self._first(text, variable, type)}"
            for name, text, variable, type in zip(
                names, self.initial, self.op.operands[region.counted :], types, strict=False
            )
        ]
        maker = "empty" if region.is_fixed else "zeros"
        for name, type in zip(names[region.carries :], region.types()[region.carries :], strict=True):
            before.append(f"{name} = np.{maker}({shape_text(type.shape)}{dtype_argument(type.dtype)})")
        at = self.names.fresh("i")
        rows, lines = self._rows(at)
        before += lines
        fixed = self._fixed(before)
        carried = names[: region.carries]
        # What a trip begins with is stacked ahead of it.
        starts = {entry.variable: name for entry, name in zip(body.inputs[1:], carried, strict=False)}
        passed = self._passed(starts, carried)
        targets, values = list(passed), list(passed.values())
        trip, last = [], []
        made = [name for name in carried if name not in passed]
        kept = [
            output for name, output in zip(names, body.outputs[: region.carries], strict=False) if name not in passed
        ]
        for name, output in zip(names[region.carries :], body.outputs[region.carries :], strict=True):
            if output in starts:
                trip.append(f"{name}[{at}] = {starts[output]}")
                continue
            made.append(self.names.fresh("row"))
            kept.append(output)
            last.append(f"{name}[{at}] = {made[-1]}")
        if made:
            called = self._call(replace(body, outputs=tuple(kept)), "trip", [at, *carried, *rows, *fixed])
            targets.insert(0, f"({', '.join(made)})" if passed and len(made) > 1 else ", ".join(made))
            values.insert(0, called)
        if targets:
            trip.append(f"{', '.join(targets)} = {', '.join(values)}")
        trip += last or ([] if trip else ["pass"])
        after = [
            f"{name} = {dtype_text(type.dtype)}({name})"
            for name, type in zip(names[: region.carries], types, strict=False)
            if self.plain and not type.shape and not type.weak
        ]
        header = self._header(at, before, trip, [*names[: region.carries], *fixed])
        remark = self.lowering.remark(self.op)
        results = tuple(each for found in items.values() for each in found)
        return Step((*remark, *marked(before, *results)), (Loop(header, tuple(marked(trip, *results))),), tuple(after))

    def _passed(self, starts: Mapping[int, str], carried: Sequence[str]) -> dict[str, str]:
        """Carried values that a trip only replaces by another one: the name of each, and of the one it takes.

        Two that take the same one are left out, because they would share memory.
        """
        outputs = self.region.body.outputs[: self.region.carries]
        return {
            name: starts[output]
            for name, output in zip(carried, outputs, strict=True)
            if output in starts and outputs.count(output) == 1
        }

    def _accumulated(self) -> Step | None:
        """The statements of a loop that only combines numbers one after the other, such as a sum."""
        region, body = self.region, self.region.body
        if not region.is_fixed or not region.trips or (region.carries, region.slices, len(body.ops)) != (1, 1, 1):
            return None
        (op,), (carry, row) = body.ops, [entry.variable for entry in body.inputs[1:3]]
        fits = op.operands == (carry, row) or (op.semantics.commutes and op.operands == (row, carry))
        types = {body.types[each] for each in (carry, row, op.result)}
        if not fits or len(types) > 1 or body.types[carry].shape or body.types[carry].weak or op.static:
            return None
        if op.primitive.target != f"numpy.{op.name}" or not op.semantics.ufunc:
            return None
        if body.outputs[0] != op.result or not {op.result, carry}.issuperset(body.outputs):
            return None
        back = "[::-1]" if region.backwards else ""
        given = owner(self.rows[0]) + back
        items = self.lowering.items.get(self.op.result, {})
        read = {number: self._name(found) for number, found in items.items() if found}
        found = self.names.fresh("partial")
        lines = [f"{found} = np.{op.name}.accumulate(np.concatenate(([{self.initial[0]}], {given})))"]
        for number, name in sorted(read.items()):
            part = "1:" if body.outputs[number] == op.result else ":-1"
            lines.append(f"{name} = {found}[{part}]{back}" if number else f"{name} = {found}[-1]")
        results = tuple(each for found in items.values() for each in found)
        return Step((*self.lowering.remark(self.op), *marked(lines, *results)), (), ())

    def _name(self, items: Sequence[int]) -> str:
        name = self.lowering.name(items[0]) if items else self.names.numbered("v")
        self.lowering.texts.update(dict.fromkeys(items, name))
        return name

    def _first(self, text: str, variable: int, type: TensorType) -> str:
        """What is carried into the first trip."""
        return f"np.array({text})" if type.shape else self._number(text, variable, type)

    def _number(self, text: str, variable: int, type: TensorType) -> str:
        """A number for a trip: Python's where trips compute with such."""
        if not self.plain or type.weak:
            return text
        value = self.lowering.tape.constants.get(variable)
        return scalar_text(value) or text if value is not None else f"{_PLAIN[type.dtype.kind]}({text})"

    def _rows(self, at: str) -> tuple[list[str], list[str]]:
        """Texts of the rows, and statements that make lists of arrays of numbers."""
        texts, lines = [], []
        first = 1 + self.region.carries
        for entry, text in zip(self.region.body.inputs[first:], self.rows, strict=False):
            if self.plain and not self.region.body.types[entry.variable].shape:
                name = self.names.fresh("rows")
                lines.append(f"{name} = {owner(text)}.tolist()")
                text = name
            elif not text.isidentifier():
                name = self.names.fresh("rows")
                lines.append(f"{name} = {text}")
                text = name
            texts.append(f"{owner(text)}[{at}]")
        return texts, lines

    def _fixed(self, before: list[str]) -> list[str]:
        """Texts of what is the same in every trip."""
        texts = []
        last = self.op.operands[len(self.op.operands) - len(self.fixed) :]
        for variable, text in zip(last, self.fixed, strict=True):
            type = self.lowering.tape.types[variable]
            value = text if type.shape else self._number(text, variable, type)
            if value != text or not text.isidentifier():
                name = self.names.fresh("fixed")
                before.append(f"{name} = {value}")
                text = name
            texts.append(text)
        return texts

    def _header(self, at: str, before: list[str], trip: list[str], given: Sequence[str]) -> str:
        """The line that repeats ``trip``."""
        region = self.region
        if region.condition is None:
            last = f"{self.count} - 1" if region.counted else str((region.trips or 0) - 1)
            return f"for {at} in range({last}, -1, -1):" if region.backwards else f"for {at} in range({self.count}):"
        before.append(f"{at} = 0")
        trip.append(f"{at} += 1")
        bound = "" if region.trips is None else f"{at} < {region.trips} and "
        return f"while {bound}{self._call(region.condition, 'goes_on', [at, *given])}:"

    def _call(self, tape: Tape, hint: str, given: Sequence[str]) -> str:
        """The call of a function of its own that computes ``tape``, with what the tape reads of ``given``."""
        used = cone(tape, tape.outputs)
        places = [number for number, entry in enumerate(tape.inputs) if entry.variable in used]
        inputs = [replace(tape.inputs[place], argument=number) for number, place in enumerate(places)]
        function, sizes = self._function(replace(tape, inputs=tuple(inputs)), hint)
        return f"{function}({', '.join([*(given[place] for place in places), *sizes])})"

    def _function(self, tape: Tape, hint: str) -> tuple[str, tuple[str, ...]]:
        """The name of a function of its own that computes ``tape``, and the named sizes that it takes at last."""
        key = self.exact, _content(tape)
        known = self.lowering.trips
        if key not in known:
            known[key] = self._made(replace(tape, name=hint))
        return known[key]

    def _made(self, tape: Tape) -> tuple[str, tuple[str, ...]]:
        lowering = self.lowering
        if len(tape) <= _LONGEST_FACTORED:
            tape = symbolic.optimise(tape, strict=self.exact, values=len(tape.outputs))
        if scalar.is_scalar(tape):
            if self.plain:
                # They are Python's numbers already, and stay so from trip to trip.
                ends = [*(entry.variable for entry in tape.inputs), *tape.outputs]
                numbers = {each: replace(tape.types[each], weak=True) for each in ends if not tape.types[each].shape}
                tape = replace(tape, types={**tape.types, **numbers})
            plan = scalar.plan_scalar(tape, strict=self.exact, values=len(tape.outputs), names=self.names)
            # The function around the loop ignores warnings for all trips.
            plan = replace(plan, functions=tuple(replace(each, decorators=()) for each in plan.functions))
            lowering.helpers.append(render("numpy/scalar_functions.py.jinja", plan=plan).strip())
            lowering.imports.update(dict.fromkeys(plan.used))
            lowering.constants.objects.update(plan.constants)
            return plan.functions[0].name, ()
        exact = frozenset(tape.types) if self.exact else frozenset()
        tape = arranged(tape, exact)
        inner = lowering.inside(tape, fuse(tape, exact), exact)
        made = inner.plan()
        fresh = self.names.fresh
        spaces = [replace(each, pool=fresh("_pool"), maker=fresh("_workspace")) for each in made.workspaces]
        sizes = _sizes(tape, made)
        parameters = (*made.parameters, *sizes)
        made = replace(made, decorators=(), workspaces=tuple(spaces), parameters=parameters)
        lowering.helpers += [*made.helpers, render("numpy/function.py.jinja", plan=made).strip()]
        lowering.imports.update(inner.imports)
        lowering.constants.lines += inner.constants.lines
        lowering.constants.objects.update(inner.constants.objects)
        return made.name, sizes


def _sizes(tape: Tape, plan: FunctionPlan) -> tuple[str, ...]:
    """The named sizes that a function mentions."""
    extents = list(extents_in((*tape.types.values(), *(op.static for op in tape.ops))))
    if not extents:
        return ()
    lines = [line for step in plan.steps for line in (*step.before, *_lines(step), *step.after)]
    words = {word for line in (*lines, plan.result) if line[:1] != "#" for word in _WORD.findall(line)}
    return tuple([name for name in extents[0].sizes.names if name in words])


def _lines(step: Step) -> list[str]:
    return [line for loop in step.loops for line in (loop.header, *loop.lines)]


def _content(tape: Tape) -> Hashable:
    """What tapes that compute the same have in common, whatever the numbers of their variables."""
    numbers = {entry.variable: number for number, entry in enumerate(tape.inputs)}
    numbers |= {op.result: len(tape.inputs) + number for number, op in enumerate(tape.ops)}

    def reference(variable: int) -> Hashable:
        if variable in numbers:
            return numbers[variable]
        value = tape.constants[variable]
        return tape.types[variable], id(value) if isinstance(value, np.ndarray) else repr(value)

    def static(value: Any) -> Hashable:
        if not isinstance(value, Region):
            # The text tells signs of zeros, and does not tell two solvers from each other.
            return type(value), repr(value), value if isinstance(value, Hashable) else id(value)
        parts = [getattr(value, field.name) for field in fields(value)]
        return tuple([_content(each) if isinstance(each, Tape) else each for each in parts])

    ops = []
    for op in tape.ops:
        statics = [(name, static(value)) for name, value in op.static]
        ops.append((op.name, *map(reference, op.operands), *statics))
    types = [tape.types[entry.variable] for entry in tape.inputs]
    return tuple(types), tuple(ops), tuple(map(reference, tape.outputs))
