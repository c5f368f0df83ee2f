"""From a request to a CUDA file and a Python file that launches its kernels, for arrays of fixed and of all sizes."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial
from typing import Any

from yota.emit.cuda.cuda_plan import KernelPlan, inline_parts, on_device, preludes
from yota.emit.cuda.scatter import MOST, is_addition
from yota.emit.language import tabled
from yota.emit.python.formatting import wrapped
from yota.emit.render import render
from yota.errors import ArgumentError, CodegenError
from yota.ir.extents import extents_in
from yota.ir.plain_text import docstring
from yota.ir.tape import Op, Tape
from yota.package.c.attempts import AllSizes, at_samples
from yota.package.c.c_contents import described_lines, head_lines, quoted_texts, stem_of, tidied
from yota.package.c.size_spelling import SizeNames, whole
from yota.package.cuda.cuda_functions import FURTHER, FunctionWriter, written
from yota.package.recorded_matrices import Recording
from yota.package.request import Request, flattened, further_axes, headline, reference_of
from yota.package.signature import renamed
from yota.package.size_recordings import Sized
from yota.schedule.nests.index_patterns import gathered_extents, index_arrays


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

    def computed(self, word: str) -> Recording:
        """What a function is written from; additions by index arrays have no more places and pieces than keys."""
        found = super().computed(word)
        for op in filter(is_addition, found.tape.ops):
            for count in extents_in(tuple(_additions(op, found.tape))):
                self.conditions.demand_at_most(MOST, count.values)
        return found

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
    flat = replace(flattened(request), smallest=1)  # a launch has threads
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
