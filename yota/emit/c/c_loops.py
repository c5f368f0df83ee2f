"""Loops of a tape as loops in C: one function that calls the kernels of a trip in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from yota.emit.c.c_plan import KernelPlan
from yota.emit.c.dialect import c_type, is_known
from yota.emit.c.kernels import argument_of, plan_kernel, result_of
from yota.emit.c.lines import Needs
from yota.emit.language import filled
from yota.emit.render import render_lines
from yota.ir.regions import Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import with_own_outputs
from yota.schedule.nests.contractions import small_as_sums
from yota.schedule.nests.groups import GATHERS, Group, Schedule, schedule
from yota.schedule.nests.index_patterns import normalised
from yota.schedule.target_forms import as_products

_ON_STACK = 4096
"""Bytes up to which an array that lives for one trip is a local variable."""
_LARGEST_PRODUCT = 65_536
"""Multiplications of a product up to which a trip does without BLAS."""
_WORTH_RELEASING = 50_000
_GUESSED = 100
"""Trips of a loop whose number is not known."""


@dataclass(frozen=True, slots=True)
class LoopKernel:
    """A loop in C.

    plan: the function: it takes the operands of the op, then ``tables``, and gives ``results``.
    results: which result of the op each of its own is; None for memory to work in.
    """

    plan: KernelPlan
    helpers: tuple[KernelPlan, ...]
    results: tuple[int | None, ...]
    types: tuple[TensorType, ...]
    tables: tuple[Any, ...]


_Call: TypeAlias = tuple[LoopKernel, tuple[int, ...], tuple[int | None, ...]]
"""What a trip calls: a loop or a kernel, its inputs, and its outputs; one that nobody reads is None."""


@dataclass(frozen=True, slots=True)
class _Carry:
    """A carried value: names of what it is now and next, of its start, and of where it ends; arrays need ``room``."""

    type: TensorType
    now: str
    next: str
    given: str
    result: str
    room: str

    @property
    def kind(self) -> str:
        return c_type(self.type.dtype)


def plan_loop(op: Op, types: Mapping[int, TensorType], name: str, needs: Needs) -> LoopKernel | None:
    """The plan of a ``loop``; None if its trips need more than kernels can do."""
    region: Region = op.keyword("region")
    tapes = [region.body] if region.condition is None else [region.body, region.condition]
    found = [type for tape in tapes for type in tape.types.values()]
    found += [*region.types(), *(types[operand] for operand in op.operands)]
    parts = [part for type in found for part in (type.parts if isinstance(type, TupleType) else (type,))]
    if not all(is_known(type.dtype) and type.size for type in parts):
        return None
    return _Writer(region, [types[operand] for operand in op.operands], name, needs).run()


class _Writer:
    def __init__(self, region: Region, types: list[TensorType], name: str, needs: Needs) -> None:
        self.region, self.types, self.name, self.needs = region, types, name, needs
        self.names = needs.language.names(name)
        self.trip = self.names.fresh("trip")
        hints = [*(["trips"] if region.counted else []), *(entry.name for entry in region.body.inputs[1:])]
        self.operands = [self.names.fresh(hint) for hint in hints]
        self.given = self.operands[region.counted :]
        self.helpers: list[KernelPlan] = []
        self.tables: dict[int, tuple[str, Any]] = {}
        self.held: dict[str, str] = {}
        """Declarations of arrays on the stack, by name."""
        self.rooms: list[tuple[str, TensorType]] = []
        self.work = 0

    def run(self) -> LoopKernel | None:
        region, body, fresh = self.region, self.region.body, self.names.fresh
        count, types = region.carries, region.types()
        results = [fresh("carried" if k < count else "rows") for k in range(len(types))]
        starts = {entry.variable: k for k, entry in enumerate(body.inputs[1 : 1 + count])}
        kept = [k for k, each in enumerate(body.outputs) if k < count or each not in starts]
        trip = self._planned(replace(body, outputs=tuple(body.outputs[k] for k in kept)))
        test = None if region.condition is None else self._planned(region.condition)
        if trip is None or (region.condition is not None and test is None):
            return None
        now, then = [fresh("now") for _ in range(count)], [fresh("then") for _ in range(count)]
        rooms = [self._room(type) if type.shape else "" for type in types[:count]]
        self.carries = [_Carry(*each) for each in zip(types, now, then, self.given, results, rooms, strict=False)]
        own = dict(self.held)
        go = "" if test is None else fresh("goes_on")
        tested = [] if test is None else self._calls(*test, [f"&{go}"])
        places = [
            *(each.next if each.type.shape else f"&{each.next}" for each in self.carries),
            *(f"{results[k]} + {self.trip}{_row(types[k])}" for k in kept[count:]),
        ]
        calls = self._calls(*trip, places)
        stacked = [
            (results[k], types[k].size // types[k].shape[0] if types[k].ndim > 1 else None, now[starts[each]])
            for k, each in enumerate(body.outputs)
            if k not in kept
        ]
        lines = render_lines(
            "c/trips.c.jinja",
            region=region,
            trip=self.trip,
            count=self.operands[0] if region.counted else "",
            carries=self.carries,
            held=own,
            rooms=[line for name, line in self.held.items() if name not in own],
            cleared=[] if region.is_fixed else [(results[k], types[k].size) for k in range(count, len(types))],
            go=go,
            test=tested,
            starts=stacked,
            calls=calls,
        )
        return self._finished(lines, [*zip(results, types, strict=True), *self.rooms], len(results))

    def _planned(self, tape: Tape) -> tuple[Tape, list[_Call]] | None:
        """What a trip calls; None if kernels and loops cannot do all of it."""
        tape = symbolic.optimise(tape, values=len(tape.outputs))
        tape, stored = small_as_sums(as_products(normalised(tape)), largest=_LARGEST_PRODUCT)
        tape = with_own_outputs(tape)
        plan = schedule(tape, looks=False, gathers=GATHERS, stored=stored)
        items = {(op.operands[0], op.keyword("index")): op.result for op in tape.ops if op.access == AccessMap.ITEM}
        calls = []
        for step in plan.steps:
            if isinstance(step, Op) and step.access == AccessMap.ITEM:
                continue
            name = f"{self.name}_part{len(self.helpers)}"
            call = self._kernel(plan, step, name) if isinstance(step, Group) else self._loop(step, tape, name, items)
            if call is None:
                return None
            calls.append(call)
            self.helpers.append(call[0].plan)
            self.work += call[0].plan.work
        return tape, calls

    def _kernel(self, plan: Schedule, group: Group, name: str) -> _Call | None:
        kernel = plan_kernel(plan, group, name, self.needs)
        if kernel.plan.places:
            return None
        pairs = zip(kernel.inputs, kernel.plan.arguments, strict=True)
        inputs = tuple([variable for variable, argument in pairs if argument.used])
        types = tuple([plan.tape.types[each] for each in kernel.outputs])
        return LoopKernel(kernel.plan, (), (), types, ()), inputs, kernel.outputs

    def _loop(self, op: Op, tape: Tape, name: str, items: Mapping[tuple[int, int], int]) -> _Call | None:
        if not op.regions:
            return None
        found = plan_loop(op, tape.types, name, self.needs)
        if found is None:
            return None
        self.helpers += found.helpers
        outputs = tuple([None if each is None else items.get((op.result, each)) for each in found.results])
        return found, op.operands, outputs

    def _room(self, type: TensorType) -> str:
        name = self.names.fresh("room")
        if type.nbytes <= _ON_STACK:
            self.held[name] = f"{c_type(type.dtype)} {name}[{type.size}];"
        else:
            self.rooms.append((name, type))
        return name

    def _calls(self, tape: Tape, calls: Sequence[_Call], places: Sequence[str]) -> list[str]:
        """The calls of a trip, which leave its outputs at ``places``."""
        region = self.region
        with_rows = len(tape.inputs) == len(region.body.inputs)
        texts: dict[int, str] = {tape.inputs[0].variable: self.trip}
        entries = iter(tape.inputs[1:])
        for carry in self.carries:
            texts[next(entries).variable] = carry.now
        for k in range(region.carries, region.carries + region.slices):
            if with_rows:
                type = self.types[k + region.counted]
                element = f"{self.given[k]} + {self.trip}{_row(type)}"
                texts[next(entries).variable] = element if type.ndim > 1 else f"{self.given[k]}[{self.trip}]"
        for entry, name in zip(entries, self.given[region.carries + region.slices :], strict=True):
            texts[entry.variable] = name
        outputs: dict[int | None, str] = dict(zip(tape.outputs, places, strict=True))
        declared: list[str] = []
        lines: list[str] = []
        for call, inputs, results in calls:
            given = ["0", str(call.plan.extent)] if call.plan.extent else []
            for variable in inputs:
                if variable in texts:
                    given.append(texts[variable])
                else:
                    value, type = tape.constants[variable], tape.types[variable]
                    given.append(self._table(value) if type.shape else self.needs.language.literal(value, type.dtype))
            given += map(self._table, call.tables)
            for output, type in zip(results, call.types, strict=True):
                place = outputs.get(output)
                if place is None:
                    place = self._room(type) if type.shape else f"&{self.names.fresh('value')}"
                    if not type.shape:
                        declared.append(f"{c_type(type.dtype)} {place[1:]};")
                if output is not None:
                    outputs[output] = place
                    texts[output] = place if type.shape else place[1:] if place[0] == "&" else f"*({place})"
                given.append(place)
            lines += filled(f"{call.plan.name}_loops({', '.join(given)});")
        return declared + lines

    def _table(self, value: Any) -> str:
        if id(value) not in self.tables:
            self.tables[id(value)] = self.names.fresh("table"), value
        return self.tables[id(value)][0]

    def _finished(self, lines: list[str], results: Sequence[tuple[str, TensorType]], count: int) -> LoopKernel:
        """The plan of a function that gives ``results``, of which the first are the op's, and the rest is memory."""
        tables = list(self.tables.values())
        arguments = [argument_of(name, type, True) for name, type in zip(self.operands, self.types, strict=True)]
        arguments += [argument_of(name, TensorType(value.dtype, value.shape), True) for name, value in tables]
        trips = self.region.trips if self.region.is_fixed else max(self.region.seen, _GUESSED)
        work = int(self.work) * int(trips or 1)
        plan = KernelPlan(
            name=self.name,
            arguments=tuple(arguments),
            results=tuple(result_of(name, type) for name, type in results),
            lines=tuple(lines),
            work=work,
            released=work >= _WORTH_RELEASING,
            runs=f"{self.name}_loops",
        )
        numbers = (*range(count), *(None for _ in self.rooms))
        types = tuple([type for _, type in results])
        return LoopKernel(plan, tuple(self.helpers), numbers, types, tuple([value for _, value in tables]))


def _row(type: TensorType) -> str:
    """How far rows lie apart."""
    size = type.size // max(type.shape[0], 1)
    return "" if size == 1 else f" * {size}"
