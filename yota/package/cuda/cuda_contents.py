"""From a request to the text of a CUDA file and of a Python file that launches its kernels with CuPy."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from yota.emit.cuda.cuda_plan import KernelPlan, inline_parts, preludes
from yota.emit.python.formatting import wrapped
from yota.emit.render import render
from yota.errors import ArgumentError
from yota.ir.plain_text import docstring
from yota.package.c.attempts import at_samples
from yota.package.c.c_contents import described_lines, head_lines, quoted_texts, stem_of, tidied
from yota.package.cuda.cuda_functions import FunctionWriter, written
from yota.package.cuda.cuda_sized import SizedInCuda
from yota.package.request import Request, flattened, further_axes, headline, reference_of


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts of the files by their names, and notes for the user.

    Raises ArgumentError if something is asked for beside value and gradient, or the function does something else at
        another size.
    Raises CodegenError if something in the function cannot be said in kernels.
    """
    more = [each for each in request.wanted if each not in ("value", "gradient")]
    if more:
        raise ArgumentError(f'with_={more[0]!r}: target="cuda" has value and gradient; use target="c" or "numpy"')
    if request.strict:
        raise ArgumentError('strict=True is not for target="cuda"; use target="c" or "numpy"')
    flat = flattened(request)
    sized = partial(SizedInCuda, open=request.call.open)
    found: FunctionWriter = at_samples(flat, sized) if flat.call.dimensions() else written(request)
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
        "tables": [re.sub("^static const", "static __device__ const", line) for line in found.shared.tables.lines],
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
    notes = [f"{request.wish!r} is called {title} in the files"] if title != request.wish else []
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
    """Whether a kernel computes in single precision."""
    parts = [member for record in kernel.records for member, _ in record.members]
    return any(map(_SINGLE.search, [*kernel.lines, *(each.type for each in kernel.parameters), *parts]))
