"""From a request to a CUDA file and a Python file that launches its kernels, for arrays of fixed and of all sizes."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from yota.emit.c.dialect import CUDA, c_type
from yota.emit.c.kernels import mentions
from yota.emit.cuda.cuda_plan import KernelPlan, Launch, Parameter, inline_parts, on_device, preludes
from yota.emit.cuda.scatter import MOST, flat_kernel, is_addition, over
from yota.emit.cuda.threads import OPEN_BLOCKS, THREADS
from yota.emit.language import filled, tabled
from yota.emit.names import Names
from yota.emit.python.formatting import wrapped
from yota.emit.render import render, render_lines
from yota.errors import ArgumentError, CodegenError
from yota.ir.plain_text import docstring
from yota.ir.tape import Op, Tape
from yota.package.c.attempts import AllSizes, at_samples
from yota.package.c.c_contents import described_lines, head_lines, quoted_texts, stem_of, tidied
from yota.package.c.size_arithmetic import (
    COUNTERS,
    SizeNames,
    Triangle,
    element,
    factor,
    refuse_more_axes,
    shifted,
    triangle,
    whole,
)
from yota.package.cuda.cuda_functions import FURTHER, FromSizes, FunctionWriter, written
from yota.package.request import Request, flattened, further_axes, headline, reference_of
from yota.package.signature import renamed
from yota.package.size_recordings import Sized
from yota.package.varying import Varying
from yota.schedule.nests.index_patterns import gathered_extents, index_arrays


@dataclass(frozen=True, slots=True)
class _Array:
    """An array, the C texts of its extents, and for rows or columns of a triangle which those are."""

    varying: Varying
    extents: tuple[str, ...]
    corner: tuple[Triangle, int] | None


def fillings(title: str, found: Sequence[Varying], names: Mapping[str, str]) -> tuple[KernelPlan, ...]:
    """Kernels called ``title`` and a number for the arrays in ``found``, which their parameters are called after."""
    arrays = [
        _Array(each, tuple(map(str, each.shape)), triangle(each.text, names)) for each in found if each.type.shape
    ]
    # Arrays of one shape, or of one triangle, are put in place together.
    groups = itertools.groupby(arrays, key=lambda each: each.corner[0] if each.corner else each.extents)
    return tuple(_kernel(f"{title}_sizes{number}", list(group), names) for number, (_, group) in enumerate(groups))


def _kernel(name: str, arrays: Sequence[_Array], names: Mapping[str, str]) -> KernelPlan:
    own = CUDA.names(name, [*names.values(), *(each.varying.hint for each in arrays)])
    types = [each.varying.type.dtype for each in arrays]
    parameters = [
        Parameter(f"{c_type(type)} *__restrict__ ", each.varying.hint, f"{type.name}[{','.join(each.extents)}]")
        for each, type in zip(arrays, types, strict=True)
    ]
    if arrays[0].corner:
        lines = _triangular(arrays[0].corner[0], arrays, own)
        return KernelPlan(name, (), (), tuple(parameters), tuple(lines), Launch(OPEN_BLOCKS, THREADS))
    lines = _rectangular(arrays, names, own)
    return flat_kernel(name, parameters, lines, 0, THREADS, open=True)


def _rectangular(arrays: Sequence[_Array], names: Mapping[str, str], own: Names) -> list[str]:
    """One loop over all elements, which have places along the axes if those matter."""
    extents = arrays[0].extents
    refuse_more_axes(extents)
    counters = [own.fresh(each) for each in COUNTERS[: len(extents)]] if len(extents) > 1 else ["at"]
    stores = []
    for each in arrays:
        value = element(each.varying.text, counters, names, each.varying.type.dtype)
        stores += filled(f"{each.varying.hint}[at] = {value};")
    places = []
    for axis, counter in enumerate(counters):
        inner = [factor(each) for each in extents[axis + 1 :]]
        place = f"at / {inner[0]}" if len(inner) == 1 else f"at / ({' * '.join(inner)})" if inner else "at"
        place += f" % {factor(extents[axis])}" if axis else ""
        places += [f"const int64_t {counter} = {place};"] if len(extents) > 1 and mentions(stores, counter) else []
    return over(" * ".join(map(factor, extents)) if len(extents) > 1 else extents[0], THREADS, [*places, *stores])


def _triangular(corner: Triangle, arrays: Sequence[_Array], own: Names) -> list[str]:
    """Loops over rows, and over the columns of one that are in the triangle."""
    words = ("row", "column", "start", *(("begin",) if corner.upper else ("short_rows", "left")))
    named = {each: own.fresh(each) for each in words}
    counters = (named["row"], named["column"])
    edges = [shifted(counters[0], corner.offset + further) for further in (0, 1)]
    return render_lines(
        "cuda/triangle.cu.jinja",
        corner=corner,
        edge=edges[0],
        both=" * ".join(map(factor, edges)),
        length=shifted(corner.extent, -corner.offset),
        stores=[(each.varying.hint, counters[each.corner[1]]) for each in arrays if each.corner],
        threads=THREADS,
        **named,
    )


class SizedInCuda(AllSizes):
    """Writes one pair of files for all sizes; with ``open``, the last size stands for any number of axes."""

    def __init__(self, request: Request, sized: Sized, names: SizeNames, *, open: bool) -> None:
        super().__init__(request, sized, names)
        self.open = self.sizes[-1] if open else ""
        self.in_python = SizeNames(names, tabled("python"))

    def writer(self, *given: Any) -> FunctionWriter:
        """What writes functions."""
        made = FunctionWriter(*given)
        made.python, made.open = replace(self.samples, spell=lambda text: whole(text, self.in_python)), self.open
        return made

    def prepared(self, tapes: Sequence[Tape]) -> tuple[Tape, FromSizes]:
        """The tape for all sizes, and what it takes from them."""
        tape, varying, _ = self.separated(tapes)
        self._demand_few(tapes)
        numbers = [each for each in varying if not each.type.shape]
        return tape, FromSizes(
            tuple(each.hint for each in varying),
            partial(fillings, found=varying, names=self.names),
            tuple(f"const {c_type(one.type.dtype)} {one.hint} = {self.number(one)};" for one in numbers),
            tuple(f"{one.hint} = {self.number(one, self.in_python)}" for one in numbers),
        )

    def _demand_few(self, tapes: Sequence[Tape]) -> None:
        """No more places, and no more pieces, of an addition by index arrays than keys have room for."""
        for ops in zip(*(tape.ops for tape in tapes), strict=True):
            if is_addition(ops[0]):
                found = [_additions(op, tape) for op, tape in zip(ops, tapes, strict=True)]
                for counts in zip(*found, strict=True):
                    self.demand_at_most(MOST, counts)

    def finish(self, writer: FunctionWriter) -> None:
        """Put what finds sizes, and checks them, ahead of everything."""
        lines: list[str] = []
        for size, name, axis in self.told(writer.inputs):
            if size == self.open:
                lines += [f"{FURTHER} = _further({name}, {axis})", f"{size} = math.prod({FURTHER})"]
            else:
                lines.append(f"{size} = _extent({name}, {axis})")
        lines += [f"if {self.conditions.failed('or')}:"]
        lines += [f'    raise ValueError("sizes must be {self.conditions.described()}")']
        failed = self.conditions.failed()
        writer.functions = [replace(one, python=(*lines, *one.python), failed=failed) for one in writer.functions]
        if writer.test:
            extents = [f"{name} = {extent}" for name, extent in self.extents()]
            writer.test = replace(writer.test, points=(*extents, *writer.test.points))


def _additions(op: Op, tape: Tape) -> list[int]:
    """How many places and pieces additions by index arrays have."""
    shape = op.keyword("shape")
    places = [math.prod(gathered_extents(index, shape)) for index in op.keyword("indices")]
    return [*places, *(tape.types[each].size for each, _ in index_arrays(tape, op))]


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts of the files by their names, and notes for the user."""
    more = [each for each in request.wanted if each not in ("value", "gradient")]
    if more:
        raise ArgumentError(f'with_={more[0]!r}: target="cuda" has value and gradient; use target="c" or "numpy"')
    if request.strict:
        raise ArgumentError('strict=True is not for target="cuda"; use target="c" or "numpy"')
    flat = flattened(request)
    sized = partial(SizedInCuda, open=request.call.open)
    found: FunctionWriter
    try:
        found = at_samples(flat, sized) if flat.call.dimensions() else written(request)
    except CodegenError:
        if not flat.call.rolls:
            raise
        # Loops that one thread is not enough for are written trip by trip.
        return collected(replace(request, call=replace(request.call, rolls=False)))
    if request.call.open and any(found.tapes[0].types[output].shape for output in found.tapes[0].outputs):
        raise ArgumentError(
            "the function returns an array, of which code in CUDA for any number of axes does not know the shape; "
            "write the axes out instead of `...`, as in float64[B,N,M]"
        )
    title = found.title
    stem = stem_of(request.stem or title)
    looks = any(each.body.looks for each in found.functions)
    banner = [*described_lines(request, found.tapes), *_CONVENTIONS, *(_OF_INDICES if looks else ())]
    banner += [f"Sizes must be {found.condition}."] if found.condition else []
    banner += further_axes(request.call, [size for each in found.functions for size in each.sizes])
    plan = {
        **quoted_texts(request),
        "banner": banner,
        "preludes": preludes(found.shared.needs),
        "tables": on_device(found.shared.tables),
        "parts": inline_parts(found.shared.needs),
        "kernels": found.kernels,
        "functions": tuple(replace(each, python=wrapped(each.python, 4)) for each in found.functions),
        "sized": bool(found.condition),
        "open": request.call.open,
        "math": any("math." in line for each in found.functions for line in each.python),
        "single": any(map(_is_single, found.kernels)),
        "looks": looks,
        "sorts": "sort" in found.shared.needs.device,
    }
    code = tidied(render("cuda/pair/source.cu.jinja", plan=plan))
    module = render(
        "cuda/pair/module.py.jinja",
        plan=plan,
        test=found.test,
        head=[docstring(line) for line in head_lines(request)],
        summary=f"{headline(request.wanted)} of {docstring(reference_of(request))}, with the kernels of {stem}.cu.",
        code=code.replace('"""', "'''"),
    )
    notes = renamed(request.wish, title, found.sources(), "files")
    return {f"{stem}.cu": code, f"{stem}.py": module}, tuple(notes)


_SINGLE = re.compile(r"\b(b?float(16)?|complex64)\b")
_CONVENTIONS = (
    "Arrays are in device memory, in C order without gaps. Results overlap neither arguments nor one another.",
    "Functions launch on a stream and return at once; `workspace` is device memory of the size that the function of",
    "that name gives, not to be used elsewhere until the stream is done. Totals have the same bits each time.",
)


_OF_INDICES = (
    "Kernels set `fault`, a number that the device can write to and that is 0 before, where an index is out of bounds",
    "for its axis; results are NaN where it was used.",
)


def _is_single(kernel: KernelPlan) -> bool:
    parts = [member for record in kernel.records for member, _ in record.members]
    return any(map(_SINGLE.search, [*kernel.lines, *(each.type for each in kernel.parameters), *parts]))
