"""Where each line of generated code comes from: ops are stamped, and the stamps ride along through all passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from yota.autodiff.reverse import gradient_tape
from yota.codegen.plan import FunctionPlan, Line
from yota.codegen.scalar import ScalarPlan
from yota.codegen.targets.numpy import Lowered, generate, lowered
from yota.ir.location import Location
from yota.ir.tape import Op, Tape
from yota.passes.pipeline import run
from yota.report.plan import Part
from yota.rules.registry import Registry

__all__ = ["MOST", "Generated", "Reversed", "generated", "reversed_tape", "stamp"]

MOST = 48
"""Ops that one line may be about: a light on more of them shows nothing."""


@dataclass(frozen=True, slots=True)
class Origin(Location):
    """A location that also says which variable was computed there.

    Every pass hands the location of what it rewrites on to what it makes of it; so does this.
    """

    variable: int = 0


@dataclass(frozen=True, slots=True)
class Reversed:
    """A tape with its adjoints.

    Parameters
    ----------
    tape
        The ops of the function, then those of its derivative.
    primal
        For each op of the derivative: the op or the input of the function that it belongs to.
    gradients
        Adjoint of each variable asked for; None where it is zero.
    """

    tape: Tape
    primal: Mapping[int, int]
    gradients: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated code.

    Parameters
    ----------
    parts
        The source, in pieces of one language.
    lines
        For numbers of lines, from 1: variables of the tape with adjoints that they compute.
    final
        The last tape.
    lowered
        The plan, of NumPy code.
    kernels
        How many functions there are in another language.
    """

    parts: tuple[Part, ...]
    lines: Mapping[int, tuple[int, ...]]
    final: Tape
    lowered: Lowered | None = None
    kernels: int = 0


def reversed_tape(tape: Tape, wrt: Iterable[int], registry: Registry) -> Reversed:
    """``tape`` with the adjoints of ``wrt``, each op of the derivative with the op that it belongs to."""
    wanted = tuple(wrt)
    found = gradient_tape(_stamped(tape), wanted, registry)
    # Where an argument is read more than once, the last sums belong to it rather than to an op.
    owner = {gradient: variable for variable, gradient in zip(wanted, found.variables, strict=True) if gradient}
    primal: dict[int, int] = {}
    for op in reversed(found.tape.ops[len(tape.ops) :]):
        primal[op.result] = stamp(op) or owner[op.result]
        if not stamp(op):
            owner.update(dict.fromkeys(op.operands, owner[op.result]))
    return Reversed(found.tape, dict(reversed(primal.items())), found.variables)


def generated(tape: Tape, *, strict: bool = False) -> Generated:
    """The NumPy code of ``tape``, its lines told apart by what they compute."""
    final = run(_stamped(tape), strict=strict)
    found = lowered(final, strict=strict)
    text = generate(final, strict=strict).text
    behind = _behind(found)
    placed = _placed(found.plan, text)
    lines = {
        number: tuple(sorted({origin for variable in variables for origin in behind.get(variable, ())}))
        for number, variables in placed.items()
    }
    return Generated((Part("python", text),), lines, final, found)


def stamp(op: Op) -> int:
    """The variable of the stamped tape that an op comes from; 0 for none."""
    return op.location.variable if isinstance(op.location, Origin) else 0


def _stamped(tape: Tape) -> Tape:
    ops = []
    for op in tape.ops:
        place = op.location or Location("", 0, "")
        ops.append(replace(op, location=Origin(place.filename, place.line, place.function, op.result)))
    return replace(tape, ops=tuple(ops))


def _behind(found: Lowered) -> dict[int, frozenset[int]]:
    """For each variable of the last tape that a line computes: what it and the ops written inside of it come from."""
    lines = [line for line in _lines(found.plan) if isinstance(line, Line)]
    computed = {variable for line in lines for variable in line.variables}
    known: dict[int, frozenset[int]] = {}
    for op in found.tape.ops:
        inside = (known.get(operand, frozenset()) for operand in op.operands if operand not in computed)
        own = frozenset([stamp(op)]) - {0}
        both = own.union(*inside)
        known[op.result] = both if len(both) <= MOST else own
    return known


def _lines(plan: FunctionPlan | ScalarPlan) -> Iterator[str]:
    """The lines of a plan's functions in the order in which its template writes them."""
    if isinstance(plan, ScalarPlan):
        for function in plan.functions:
            yield from (*function.reads, *function.body)
        return
    for step in plan.steps:
        yield from step.before
        for loop in step.loops:
            yield from (loop.header, *loop.lines)
        yield from step.after


def _placed(plan: FunctionPlan | ScalarPlan, text: str) -> dict[int, tuple[int, ...]]:
    """Numbers of the lines of ``text`` with the variables that they compute."""
    rows = text.split("\n")
    found: dict[int, tuple[int, ...]] = {}
    number = next(place for place, row in enumerate(rows) if row.startswith("def ") and "_workspace" not in row)
    for line in _lines(plan):
        number = next(place for place in range(number + 1, len(rows)) if rows[place].strip() == line.strip())
        if isinstance(line, Line):
            found[number + 1] = line.variables
    return found
