"""From a request to the text of a file in a language that a table describes."""

from __future__ import annotations

from dataclasses import replace

from yota.emit.language import tabled
from yota.emit.render import render
from yota.errors import ArgumentError
from yota.package.c import c_contents
from yota.package.c.attempts import at_samples
from yota.package.c.c_contents import described_lines, quoted_texts, stem_of, tidied
from yota.package.c.c_functions import FunctionWriter, written
from yota.package.c.c_sized import SizedInC
from yota.package.provenance import recorded_decision
from yota.package.request import Request, flattened, further_axes


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts of the files by their names, and notes for the user.

    Raises ArgumentError if something is asked for that only other targets have, or the function does something else
        at another size.
    Raises CodegenError if something in the function cannot be said in the language.
    """
    language = tabled(request.target)
    if request.self_test:
        raise ArgumentError(f'self_test=True is not for target="{request.target}"; use target="c" or "numpy"')
    flat = flattened(request)
    found: FunctionWriter = at_samples(flat, SizedInC) if flat.call.dimensions() else written(flat)
    sizes = [size for each in found.functions for size in each.sizes]
    banner = described_lines(request, found.tapes)
    banner += ["Arrays are in C order without gaps. Results overlap neither arguments nor one another."]
    banner += [f"Sizes must satisfy {found.condition}."] if found.condition else []
    banner += [f"Decision {number}: {recorded_decision(each)}" for number, each in enumerate(found.guards, start=1)]
    banner += further_axes(request.call, sizes)
    plan = {
        **quoted_texts(request),
        "banner": banner,
        "tables": found.shared.tables.lines,
        "functions": found.functions,
        "name": found.title,
        "language": language,
    }
    template = f"{language.folder}/module.jinja"
    parts = language.called(render(template, plan={**plan, "parts": []}))
    # The same loops in C are held against NumPy at sizes that they were not made from.
    proved = c_contents.collected(replace(request, target="c", stem=None))[1] if found.condition else ()
    notes = [f"{request.wish!r} is called {found.title} in the file"] if found.title != request.wish else []
    text = tidied(render(template, plan={**plan, "parts": parts}))
    return {stem_of(request.stem or found.title) + language["ending"]: text}, tuple(dict.fromkeys([*notes, *proved]))
