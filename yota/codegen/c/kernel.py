"""Plans the kernels of one tape: their arguments and results, and the text of their loops."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from yota.codegen.c.body import BodyWriter
from yota.codegen.c.groups import Group, Schedule
from yota.codegen.c.lines import Needs, comment
from yota.codegen.c.names import LocalNames
from yota.codegen.c.pieces import cut
from yota.codegen.c.plan import Argument, KernelPlan, Partial, Result
from yota.codegen.c.types import c_type, npy_type, scalar_type
from yota.ir.tape import Tape
from yota.ir.types import TensorType

__all__ = ["WORTH_KEEPING", "ArrayNames", "Kernel", "argument_of", "plan_kernel", "remarks", "result_hint", "result_of"]

_WORTH_THREADS = 4_000_000
_WORTH_RELEASING = 50_000
WORTH_KEEPING = 1 << 17
"""Bytes of a result whose memory is kept for the next one."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: what it takes and gives, by the tape's variables, and its plan."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    plan: KernelPlan


def plan_kernel(
    plan: Schedule,
    group: Group,
    name: str,
    needs: Needs,
    parameters: tuple[int, ...] | None = None,
    *,
    known: Mapping[int, str] | None = None,
    whole: bool = False,
    reserved: Iterable[str] = (),
) -> Kernel:
    """The plan of the kernel that computes ``group``.

    Parameters
    ----------
    parameters
        What it takes, read or not; by default what it reads.
    known
        Names of variables that stand fast.
    whole
        See `BodyWriter`.
    reserved
        Further names that are taken.
    """
    tape = plan.tape
    names = LocalNames(name, [*(known or {}).values(), *reserved])
    found = ArrayNames(tape, names)
    found.update(known or {})
    for variable in parameters or ():
        found[variable]
    results = {
        root.variable: (known or {}).get(root.variable) or names.fresh(result_hint(tape, root.variable))
        for root in group.roots
    }
    body = BodyWriter(plan, group, found, results, names, needs, whole).run()
    inputs = tuple(sorted(body.reads)) if parameters is None else parameters
    parallel = body.work >= _WORTH_THREADS and body.outer > 1
    shares = tuple(body.partials) if parallel else ()
    arguments = tuple(argument_of(found[v], tape.types[v], v in body.reads) for v in inputs)
    written = tuple(result_of(results[root.variable], tape.types[root.variable], shares) for root in group.roots)
    pieces, lines = ((), tuple(body.lines)) if group.extents else cut(body.lines, name, arguments, written)
    made = KernelPlan(
        name=name,
        remarks=remarks(plan, group),
        arguments=arguments,
        results=written,
        partials=shares,
        lines=lines,
        extent=body.outer,
        work=body.work,
        parallel=parallel,
        released=body.work >= _WORTH_RELEASING,
        pieces=pieces,
        places=tuple((found[variable], extent) for variable, extent in sorted(body.places.items())),
        runs=f"{name}_{'run' if parallel else 'loops'}",
    )
    if any(tape.types[v].is_complex for v in (*inputs, *results)):
        needs.complex = True
    return Kernel(inputs, tuple(results), made)


class ArrayNames(dict[int, str]):
    """Names of what a kernel reads, given when they are first needed."""

    def __init__(self, tape: Tape, names: LocalNames) -> None:
        super().__init__()
        self._tape, self._names = tape, names
        self._inputs = {entry.variable: ".".join((entry.name, *map(str, entry.path))) for entry in tape.inputs}

    def __missing__(self, variable: int) -> str:
        hint = self._inputs.get(variable) or self._tape.names.get(variable)
        if not hint:
            hint = "table" if variable in self._tape.constants else f"v{variable}"
        name = self[variable] = self._names.fresh(hint)
        return name


def result_hint(tape: Tape, variable: int) -> str:
    """What a result may be called."""
    known = tape.names.get(variable)
    if known:
        return known
    if variable in tape.outputs:
        position = tape.outputs.index(variable)
        return "value" if position == 0 else "gradient" if len(tape.outputs) == 2 else f"gradient_{position - 1}"
    return f"v{variable}"


def _shape(type: TensorType) -> str:
    return ", ".join(map(str, type.shape))


def argument_of(name: str, type: TensorType, used: bool) -> Argument:
    """What a call takes."""
    kind = c_type(type.dtype)
    number = "" if type.shape else f"take_{scalar_type(type.dtype).lower()}"
    return Argument(name, kind, npy_type(type.dtype), _shape(type), type.ndim, number, used, str(type))


def result_of(name: str, type: TensorType, shares: tuple[Partial, ...] = ()) -> Result:
    """What a call gives."""
    make = ""
    if not type.shape:
        make = f"{'plain' if type.weak else 'number'}_{scalar_type(type.dtype).lower()}"
    large = int(type.size) * type.dtype.itemsize >= WORTH_KEEPING
    allocate = "large_array" if large else "PyArray_SimpleNew"
    handed = next((f"{name}_parts + part * {each.size}" for each in shares if each.name == name), name)
    return Result(
        name, c_type(type.dtype), npy_type(type.dtype), _shape(type), type.ndim, make, str(type), handed, allocate
    )


def remarks(plan: Schedule, group: Group) -> tuple[str, ...]:
    """The user's lines that a kernel computes."""
    seen: dict[tuple[str, int], None] = {}
    for variable in sorted({v for root in group.roots for v in (*root.visited, root.variable)}):
        op = plan.definitions.get(variable)
        if op is not None and op.location is not None:
            seen.setdefault((op.location.filename, op.location.line))
    line_of: Callable[[str, int], str] = linecache.getline
    texts = [line_of(*place).strip() for place in seen]
    return tuple(comment(text[:100]) for text in texts[:12] if text)
