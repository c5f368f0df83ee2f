"""Figures about generated code: operations, memory traffic, workspace, fusion groups."""

from __future__ import annotations

from collections.abc import Iterable

from yota.emit.targets.numpy import Lowered
from yota.ir.op_counts import elements, operations, total
from yota.ir.tape import Tape
from yota.optimize.array_views import is_view
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
    ops = (op for op in recorded.ops if not is_view(op, recorded.types))
    once = sum(_bytes(recorded, variable) for op in ops for variable in (*op.operands, op.result))
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
        return sum(_bytes(tape, variable) for variable in ends)
    units = [unit for unit in found.units if unit.extent or not is_view(unit.members[0].op, tape.types)]
    return sum(_bytes(tape, variable) for unit in units for variable in (*unit.reads, *unit.results))


def _bytes(tape: Tape, variable: int) -> int:
    type = tape.types[variable]
    return type.size * type.dtype.itemsize


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
