"""Plans the kernels of one tape: their arguments and results, and the text of their loops."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yota.emit.c.c_plan import Argument, KernelPlan, Partial, Piece, Result
from yota.emit.c.dialect import c_type, npy_type, scalar_type
from yota.emit.c.kernel_body import BodyWriter
from yota.emit.c.lines import Needs, harmless
from yota.emit.language import Language
from yota.emit.tree import Define, Remark, Statement
from yota.ir.types import TensorType
from yota.optimize.rewrite import COPY
from yota.schedule.nests.groups import Group, Schedule

_LONGEST = 1_500
"""Statements of a kernel that is left whole."""
_PIECE = 150
_WORD = re.compile(r"[A-Za-z_]\w*")


def _cut(
    statements: Sequence[Statement],
    name: str,
    arguments: Sequence[Argument],
    results: Sequence[Result],
    language: Language,
) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """Functions that ``statements`` are spread over, and the lines that call them in turn.

    What one function computes and a later one reads is kept in arrays, one for each type.
    """
    groups: list[list[Statement]] = []
    for each in statements:
        if groups and isinstance(groups[-1][-1], Remark):
            groups[-1].append(each)
        else:
            groups.append([each])
    if len(groups) <= _LONGEST:
        return (), tuple(language.scoped(statements))
    starts = range(0, len(groups), _PIECE)
    parts = [[each for group in groups[start : start + _PIECE] for each in group] for start in starts]
    home = {each.name: (k, each.type) for k, part in enumerate(parts) for each in part if isinstance(each, Define)}
    texts = [language.printed(part) for part in parts]
    reads = [[word for word in _words(text) if word in home and home[word][0] < k] for k, text in enumerate(texts)]
    places: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for word in dict.fromkeys(word for each in reads for word in each):
        kind = home[word][1]
        places[word] = f"kept_{kind}[{sizes.setdefault(kind, 0)}]"
        sizes[kind] += 1
    own = [each for each in arguments if each.used]
    known = [*(each.name for each in own), *(each.name for each in results)]
    parameters = [f"const {each.type} {'*restrict ' if each.shape else ''}{each.name}" for each in own]
    parameters += [f"{each.type} *restrict {each.name}" for each in results]
    parameters += [f"{kind} *restrict kept_{kind}" for kind in sizes]
    pieces = []
    for k, text in enumerate(texts):
        body = [f"const {home[word][1]} {word} = {places[word]};" for word in reads[k]]
        body += [*text, *(f"{place} = {word};" for word, place in places.items() if home[word][0] == k)]
        words = _words(body)
        unused = [each for each in (*known, *(f"kept_{kind}" for kind in sizes)) if each not in words]
        pieces.append(Piece(f"{name}_part{k}", tuple(parameters), (*(f"(void){each};" for each in unused), *body)))
    given = ", ".join([*known, *(f"kept_{kind}" for kind in sizes)])
    calls = [f"{kind} kept_{kind}[{size}];" for kind, size in sizes.items()]
    return tuple(pieces), (*calls, *(f"{piece.name}({given});" for piece in pieces))


def _words(lines: Iterable[str]) -> dict[str, None]:
    """The words in code, in order; comments do not count."""
    return dict.fromkeys(word for line in lines if not line.startswith("/*") for word in _WORD.findall(line))


def mentions(body: Iterable[str], name: str) -> bool:
    """Whether code has a name in it; comments do not count."""
    return any(re.search(rf"\b{name}\b", line) for line in body if not line.startswith("/*"))


_WORTH_THREADS = 4_000_000
WORTH_RELEASING = 50_000
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
    """The plan of the kernel that computes ``group``; by default its parameters are what it reads."""
    tape = plan.tape
    names = needs.language.names(name, [*(known or {}).values(), *reserved])
    body = BodyWriter(plan, group, names, needs, known or {}, parameters or (), whole=whole)
    body.run()
    found, results = body.arrays, body.results
    inputs = tuple(sorted(body.reads)) if parameters is None else parameters
    parallel = body.work >= _WORTH_THREADS and int(body.outer) > 1
    shares = tuple(body.partials) if parallel else ()
    arguments = tuple(argument_of(found[v], tape.types[v], v in body.reads) for v in inputs)
    written = tuple(
        replace(
            result_of(results[root.variable], tape.types[root.variable], shares),
            given=_given(plan, root.variable, inputs),
        )
        for root in group.roots
    )
    language = needs.language
    pieces: tuple[Piece, ...] = ()
    if group.extents or language.inlines:
        lines = tuple(language.scoped(body.statements))
    else:
        pieces, lines = _cut(body.statements, name, arguments, written, language)
    made = KernelPlan(
        name=name,
        remarks=remarks(plan, group, language),
        arguments=arguments,
        results=written,
        partials=shares,
        lines=lines,
        extent=body.outer,
        work=body.work,
        parallel=parallel,
        released=body.work >= WORTH_RELEASING,
        pieces=pieces,
        places=tuple((found[variable], extent) for variable, extent in sorted(body.places.items())),
        runs=f"{name}_{'run' if parallel else 'loops'}",
    )
    if any(tape.types[v].is_complex for v in (*inputs, *results)):
        needs.complex = True
    return Kernel(inputs, tuple(results), made)


def _shape(type: TensorType) -> str:
    return ", ".join(map(str, type.shape))


def argument_of(name: str, type: TensorType, used: bool) -> Argument:
    """What a call takes."""
    kind = c_type(type.dtype)
    number = "" if type.shape else f"take_{scalar_type(type.dtype).lower()}"
    return Argument(name, kind, npy_type(type.dtype), _shape(type), type.ndim, number, used, str(type))


def with_sizes(plan: KernelPlan, names: Iterable[str]) -> tuple[KernelPlan, tuple[str, ...]]:
    """The plan of a kernel that takes the sizes in its code ahead of its arguments, and these sizes."""
    taken = tuple([each for each in names if mentions(plan.lines, each)])
    sizes = [Argument(each, "ptrdiff_t", "", "", 0, "", True, "") for each in taken]
    return replace(plan, arguments=(*sizes, *plan.arguments)), taken


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


def _given(plan: Schedule, variable: int, inputs: Sequence[int]) -> int | None:
    """The position of the Python float among the arguments that is the result itself, if there is one."""
    op, type = plan.definitions.get(variable), plan.tape.types[variable]
    if op is None or op.primitive is not COPY or op.operands[0] not in inputs or type.shape:
        return None
    return inputs.index(op.operands[0]) if type.weak and type.dtype == "float64" else None


def remarks(plan: Schedule, group: Group, language: Language) -> tuple[str, ...]:
    """The user's lines that a kernel computes."""
    seen: dict[tuple[str, int], None] = {}
    for variable in sorted({v for root in group.roots for v in (*root.visited, root.variable)}):
        op = plan.definitions.get(variable)
        if op is not None and op.location is not None:
            seen.setdefault((op.location.filename, op.location.line))
    texts = [linecache.getline(*place).strip() for place in seen]
    return tuple(language.printed(Remark(harmless(text[:100])) for text in texts[:_MOST_REMARKS] if text))


_MOST_REMARKS = 12


def plan_kernels(plan: Schedule, entry: str, needs: Needs) -> list[Kernel]:
    """A kernel for each group; groups of one form share what is written."""
    known: dict[Any, tuple[int, tuple[int, ...]]] = {}
    found: list[Kernel] = []
    texts: dict[str, dict[str, None]] = {}
    for group in plan.steps:
        if not isinstance(group, Group):
            continue
        form, read = _form(plan, group)
        try:
            first, places = known.get(form, (None, ()))
        except TypeError:  # a keyword that cannot be hashed
            form, first, places = object(), None, ()
        if first is None:
            known[form] = len(found), read
            kernel = plan_kernel(plan, group, f"{entry}_kernel{len(known) - 1}", needs)
        else:
            # The first kernel of its form, with what it takes and gives for another group.
            same = dict(zip(places, read, strict=True))
            inputs = tuple(same.get(variable, variable) for variable in found[first].inputs)
            kernel = Kernel(inputs, tuple(root.variable for root in group.roots), found[first].plan)
        found.append(kernel)
        texts.setdefault(kernel.plan.name, {}).update(dict.fromkeys(remarks(plan, group, needs.language)))
    plans = {
        kernel.plan.name: replace(kernel.plan, remarks=tuple(texts[kernel.plan.name])[:_MOST_REMARKS])
        for kernel in reversed(found)
    }
    return [replace(kernel, plan=plans[kernel.plan.name]) for kernel in found]


def _form(plan: Schedule, group: Group) -> tuple[Any, tuple[int, ...]]:
    """What tells a group from others that compute something else, and the variables in memory in order.

    Arguments of the function's keep their names, for errors name them; constants are told apart, for code depends on
    them.
    """
    tape = plan.tape
    numbers: dict[int, int] = {}
    read: list[int] = []
    parts: list[Any] = [group.extents]
    names = {entry.variable: (entry.name, entry.path) for entry in tape.inputs}
    for root in group.roots:
        parts.append((root.shape, root.loops, tuple(tuple(sorted(cut)) for cut in root.cuts)))
        waiting = [(root.variable, True)]
        while waiting:
            variable, whole = waiting.pop()
            op = plan.definitions.get(variable)
            if variable in numbers and not (whole and variable == root.variable):
                continue
            if op is None or (variable in plan.leaves and not whole):
                numbers[variable] = len(numbers)
                read.append(variable)
                constant = variable if variable in tape.constants else None
                parts.append((tape.types[variable], names.get(variable), constant))
                continue
            missing = [operand for operand in op.operands if operand not in numbers]
            if missing:
                waiting.append((variable, whole))
                waiting.extend((operand, False) for operand in missing)
                continue
            operands = tuple(numbers[operand] for operand in op.operands)
            numbers[variable] = len(numbers)
            parts.append((op.primitive, op.static, tape.types[variable], operands))
    return tuple(parts), tuple(read)
