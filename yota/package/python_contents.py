"""From a call to the text of its module: traced at the sizes that it needs, written, and held against yota."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from yota.errors import ArgumentError
from yota.ir.plain_text import visible
from yota.package.assembly import assembled
from yota.package.provenance import called, summary
from yota.package.python_functions import FunctionWriter
from yota.package.request import Request, axes, flattened, name_of_rest
from yota.package.signature import is_renamed
from yota.package.size_checks import TooSmallError, proved
from yota.package.size_recordings import sized
from yota.package.subject import subject_of

_RANKS = (0, 1, 2, 4)
"""Numbers of further axes at which code for any of them is proved."""


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Text of the module by its file name, and notes for the user."""
    if not request.call.dimensions() and not request.call.open:
        return _proved(request, few=True, is_checked=False)
    found: ArgumentError | None = None
    # At small sizes a part of an array may have another length than its formula says.
    for few, is_checked in ((True, False), (False, False), (False, True)):
        try:
            return _proved(request, few=few, is_checked=is_checked)
        except ArgumentError as fault:
            found = fault if not is_checked or found is None else found
    least: dict[str, int] = {}
    while isinstance(found, TooSmallError):
        least |= found.least
        try:
            return _proved(request, few=False, is_checked=False, least=least)
        except ArgumentError as fault:
            found = fault
    assert found is not None
    raise found


def _proved(
    request: Request, *, few: bool, is_checked: bool, least: Mapping[str, int] | None = None
) -> tuple[dict[str, str], tuple[str, ...]]:
    call, wrt, strict = request.call, request.wrt, request.strict
    if call.open and request.self_test:
        raise ArgumentError(
            "self_test needs a known number of axes; write them out instead of `...`, as in float64[B,N,M]"
        )
    flat, title = flattened(request).call, called(request.wish)
    found = None
    if flat.dimensions():
        found = sized(flat, wrt, strict=strict, few=few)
        found = replace(found, is_checked=is_checked, least={**found.least, **(least or {})})
    subjects = found.subjects if found else (subject_of(flat, wrt),)
    writer = FunctionWriter(title, summary(call.function), found, subjects, name_of_rest(call), strict)
    writer.fill(request.wanted, self_test=request.self_test)
    notes = [f"{visible(request.wish)!r} is called {title} in the module"] if title != request.wish else []
    renamed = [each for each in writer.parameters if is_renamed(each.name, each.source)]
    notes += [f"{visible(each.source)} is called {each.name} in the module" for each in renamed]
    text = assembled(writer, request)
    for ranked in [call.with_axes(axes(count)) for count in _RANKS] if call.open else [call]:
        if call.open or ranked.dimensions():
            proved(text, title, ranked, wrt, request.wanted, found, strict=strict)
    return {f"{title}.py": text}, tuple(notes)
