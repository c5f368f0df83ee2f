"""Links lines of generated code to ops by stamps that all passes preserve, and gives figures about the code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from yota.emit.c.lines import comment
from yota.emit.python.function_plan import FunctionPlan, Line
from yota.emit.python.scalar import ScalarPlan
from yota.emit.targets import c, cuda
from yota.emit.targets.numpy import Lowered, generate, lowered
from yota.ir.location import Location
from yota.ir.printing import elements, operations, total
from yota.ir.tape import Op, Tape
from yota.optimize.array_writes import is_view
from yota.optimize.pipeline import run
from yota.rules.registry import Registry
from yota.tools.report.source_pieces import Part, Total
from yota.tracing.source_lines import source_line
from yota.transform.reverse.backward import gradient_tape

MOST = 48
"""Largest number of ops that one line is linked to."""


@dataclass(frozen=True, slots=True)
class Origin(Location):
    """A location with the variable that was computed there.

    Every pass copies the location of an op to the ops that replace it, and so preserves the stamp.
    """

    variable: int = 0


@dataclass(frozen=True, slots=True)
class Reversed:
    """A tape with its adjoints.

    primal: the op or input of the function to which each op of the derivative belongs.
    gradients: adjoint of each requested variable; None if it is zero.
    """

    tape: Tape
    primal: Mapping[int, int]
    gradients: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated code.

    parts: the source, in parts of one language each.
    lines: variables of the tape with adjoints that each line computes, by line number from 1.
    kernels: number of functions in another language.
    """

    parts: tuple[Part, ...]
    lines: Mapping[int, tuple[int, ...]]
    final: Tape
    lowered: Lowered | None = None
    kernels: int = 0


def reversed_tape(tape: Tape, wrt: Iterable[int], registry: Registry) -> Reversed:
    """``tape`` with the adjoints of ``wrt``, and the function's op for each op of the derivative."""
    wanted = tuple(wrt)
    found = gradient_tape(_stamped(tape), wanted, registry)
    # The last sums of adjoints of an argument that is read several times belong to the argument.
    owner = {gradient: variable for variable, gradient in zip(wanted, found.variables, strict=True) if gradient}
    primal: dict[int, int] = {}
    for op in reversed(found.tape.ops[len(tape.ops) :]):
        primal[op.result] = stamp(op) or owner[op.result]
        if not stamp(op):
            owner.update(dict.fromkeys(op.operands, owner[op.result]))
    return Reversed(found.tape, dict(reversed(primal.items())), found.variables)


def generated(tape: Tape, *, strict: bool = False) -> Generated:
    """The NumPy code of ``tape``, with the variables that each line computes."""
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
    """For each variable of the last tape that a line computes: the stamps of it and of its inlined ops."""
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
    """The lines of a plan's functions in the order of the template."""
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
    """Line numbers of ``text`` with the variables that the lines compute."""
    rows = text.split("\n")
    found: dict[int, tuple[int, ...]] = {}
    number = next(place for place, row in enumerate(rows) if row.startswith("def ") and "_workspace" not in row)
    for line in _lines(plan):
        number = next(place for place in range(number + 1, len(rows)) if rows[place].strip() == line.strip())
        if isinstance(line, Line):
            found[number + 1] = line.variables
    return found


_COMMENT = re.compile(r"\s*(/\* .* \*/|# .*)$")
_SHOWN = (80, 100)
"""Number of characters of a source line in comments, in loops and before functions."""


def native(tape: Tape, target: str, *, strict: bool = False) -> Generated:
    """The code of ``tape``, a function with its adjoints, for the target ``"c"`` or ``"cuda"``."""
    final = run(tape, strict=strict)
    found = c.generate(final, strict=strict) if target == "c" else cuda.generate(final)
    parts = [Part("python", found.driver)] if found.driver else []
    title = f"# {found.entry}.{'c' if target == 'c' else 'cu'}"
    if found.code:
        parts.append(Part(target, f"\n\n{title}\n\n{found.code}" if parts else found.code))
    text = "".join(part.text for part in parts)
    lines = _linked(text.split("\n"), _ops_by_line(tape))
    return Generated(tuple(parts), lines, final, kernels=len(found.kernels))


def _ops_by_line(tape: Tape) -> dict[str, set[int]]:
    """Ops by the comment text of their source lines."""
    found: dict[str, set[int]] = defaultdict(set)
    for op in tape.ops:
        line = source_line(op.location)
        for length in _SHOWN if line else ():
            found[comment(line[:length])].add(op.result)
            found[f"# {line[:length].rstrip()}"].add(op.result)
    return {line: ops for line, ops in found.items() if len(ops) <= MOST}


def _linked(rows: Iterable[str], ops: Mapping[str, set[int]]) -> dict[int, tuple[int, ...]]:
    """Line numbers, from 1, with their ops."""
    found: dict[int, tuple[int, ...]] = {}
    ahead: set[int] = set()  # of the function that begins
    current: set[int] = set()
    for number, row in enumerate(rows, start=1):
        inside = row.startswith(" ")
        if not row.strip() or row == "}":
            ahead, current = set(), set()
            continue
        match = _COMMENT.match(row)
        if match and match[1] in ops:
            current = ops[match[1]]
            ahead |= set() if inside else current
            found[number] = tuple(sorted(current))
        elif inside and (current or ahead):
            found[number] = tuple(sorted(current or ahead))
        elif row == "{":
            # Lines before the first comment of a body belong to all of its ops.
            current = set()
    return found


def totals(primal: Tape, recorded: Tape, made: Generated) -> tuple[Total, ...]:
    """The figures for a page, from the function, its tape with adjoints before any pass, and the generated code."""
    counts = ", ".join(f"{count} {name}" for name, count in operations(made.final).items())
    work = (
        Total("operations", f"{total(made.final)}", f"{counts or 'none'}; {total(recorded)} before the passes"),
        Total("elements", _counted(elements(made.final)), f"{_counted(elements(primal))} in the function alone"),
    )
    return (*work, *(_kernels(made) if made.lowered is None else _memory(recorded, made.lowered)))


def _kernels(made: Generated) -> tuple[Total, ...]:
    """Figures about code in another language."""
    found = {part.language: part.text.strip("\n").count("\n") + 1 for part in made.parts}
    language = next((each for each in found if each != "python"), "python")
    beside = f"{found['python']} lines of Python around them" if "python" in found else "nothing of Python around them"
    name = {"c": "C", "cuda": "CUDA"}.get(language, "Python")
    return (Total("kernels", f"{made.kernels}", f"{found[language]} lines of {name}; {beside}"),)


def _memory(recorded: Tape, found: Lowered) -> tuple[Total, ...]:
    """Figures about NumPy code."""
    ops = (op for op in recorded.ops if not is_view(op, recorded.types))
    once = sum(recorded.types[variable].nbytes for op in ops for variable in (*op.operands, op.result))
    moved = moved_bytes(found)
    groups = [unit for unit in found.units if unit.extent]
    loops = [unit for unit in groups if unit.extent > unit.block]
    alone = len(found.units) - len(groups)
    workspace = sum(slot.size * slot.dtype.itemsize for slot in found.storage.slots) if found.storage else 0
    shape = f"{len(loops)} blocked loop{'' if len(loops) == 1 else 's'}, {alone} ops on whole arrays"
    return (
        Total("bytes moved", sized(moved), f"{sized(once)} if every op ran by itself"),
        Total("workspace", sized(workspace), "kept between calls" if workspace else "none is needed"),
        Total("fusion groups", f"{len(groups)}", shape if found.units else "scalar code: no arrays"),
    )


def moved_bytes(found: Lowered) -> int:
    """Bytes read from and written to whole arrays; blocks and registers do not count."""
    tape = found.tape
    if not found.units:
        ends = [*(entry.variable for entry in tape.inputs), *tape.outputs]
        return sum(tape.types[variable].nbytes for variable in ends)
    units = [unit for unit in found.units if unit.extent or not is_view(unit.members[0].op, tape.types)]
    return sum(tape.types[variable].nbytes for unit in units for variable in (*unit.reads, *unit.results))


def sized(count: int) -> str:
    """A number of bytes as readable text.

    >>> sized(640), sized(2_400_000)
    ('640 B', '2.4 MB')
    """
    return _scaled(count, (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))) or f"{count} B"


def _counted(count: int) -> str:
    return _scaled(count, (("billion", 10**9), ("million", 10**6))) or f"{count:,}"


def _scaled(count: int, units: Iterable[tuple[str, int]]) -> str:
    return next((f"{count / scale:.3g} {unit}" for unit, scale in units if count >= scale), "")
