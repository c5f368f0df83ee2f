"""Figures about generated code: operations, memory traffic, workspace, fusion groups."""

from __future__ import annotations

from collections.abc import Iterable

from yota.emit.targets.numpy import Lowered
from yota.ir.op_counts import elements, operations, total
from yota.ir.tape import Tape
from yota.optimize.array_views import is_view
from yota.schedule.blocked.units import Unit
from yota.tools.report.origins import Generated
from yota.tools.report.report_plan import Total


def totals(primal: Tape, recorded: Tape, made: Generated) -> tuple[Total, ...]:
    """The figures for a page.

    primal: the function.
    recorded: the function with its adjoints, before any pass.
    made: the generated code.
    """
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
    once = _moved_op_by_op(recorded)
    moved = moved_bytes(found)
    groups = [unit for unit in found.units if unit.extent]
    loops = [unit for unit in groups if unit.extent > unit.block]
    alone = len(found.units) - len(groups)
    workspace = sum(slot.size * slot.dtype.itemsize for slot in found.storage.slots) if found.storage else 0
    plural = "" if len(loops) == 1 else "s"
    shape = (
        f"{len(loops)} blocked loop{plural}, {alone} ops on whole arrays" if found.units else "scalar code: no arrays"
    )
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
        return sum(_bytes(tape, variable) for variable in ends)
    return sum(_bytes(tape, variable) for unit in found.units for variable in _crossing(tape, unit))


def _crossing(tape: Tape, unit: Unit) -> Iterable[int]:
    if not unit.extent and is_view(unit.members[0].op, tape.types):
        return ()
    return (*unit.reads, *unit.results)


def _moved_op_by_op(tape: Tape) -> int:
    ops = (op for op in tape.ops if not is_view(op, tape.types))
    return sum(_bytes(tape, variable) for op in ops for variable in (*op.operands, op.result))


def _bytes(tape: Tape, variable: int) -> int:
    type = tape.types[variable]
    return type.size * type.dtype.itemsize


def sized(count: int) -> str:
    """A number of bytes as readable text.

    >>> sized(640), sized(2_400_000)
    ('640 B', '2.4 MB')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"


def _counted(count: int) -> str:
    for unit, scale in (("billion", 10**9), ("million", 10**6)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:,}"
