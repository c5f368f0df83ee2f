"""Code for all sizes is made at several: sizes at which it has one form, and functions traced there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from yota.codegen.c.names import FOREIGN, FileNames, LocalNames
from yota.errors import CodegenError
from yota.generation.c.texts import DifferentError
from yota.generation.provenance import called
from yota.generation.request import Request
from yota.generation.sizes import Samples, samples_of
from yota.generation.sizing import sized
from yota.generation.subject import Call, Subject, subject_of

__all__ = ["at_samples"]

_T = TypeVar("_T")
_SMALLEST, _SMALLEST_OF_MANY = (340, 440, 560), (135, 170, 210)
"""Extents from which on code is no longer written in another way for its arrays being small.

More than one is tried: statements are also cut where they are long, which numbers with more digits make them.
"""
_APART = 13
"""Loops of about the same length run together: extents that are not meant to be alike must not look it."""


def at_samples(request: Request, write: Callable[[Samples, Sequence[Subject], str, Mapping[str, str]], _T]) -> _T:
    """What ``write`` makes of samples, the function traced at each, its name, and those of sizes in C.

    Raises
    ------
    ArgumentError
        If the function does something else at another size, or the code for one size differs in more than numbers.
    """
    call, wrt = request.call, request.wrt
    call = sized(call, wrt, strict=request.strict).subjects[0].call
    title = FileNames().fresh(called(request.wish))
    names = _size_names(title, call.dimensions())
    starts = _SMALLEST if len(names) < 3 else _SMALLEST_OF_MANY
    for start in starts:
        samples = _samples(call, start)
        try:
            subjects = [subject_of(call, wrt, size) for size in samples.sizes]
            return write(samples, subjects, title, names)
        except DifferentError:
            if start == starts[-1]:
                raise
        except CodegenError as fault:
            raise CodegenError(_with_names(str(fault), samples)) from None
    raise AssertionError("unreachable")


def _samples(call: Call, start: int) -> Samples:
    """Sizes that are large, and unlike one another and the extents that are numbers."""
    names = call.dimensions()
    _, arguments = call.arguments(dict.fromkeys(names, 1))
    known = {extent for leaf in arguments.leaves for extent in getattr(leaf.value, "shape", ())}
    return samples_of(names, start, _APART, sorted(known))


def _with_names(text: str, samples: Samples) -> str:
    """A message with names for the sizes of the first sample."""
    for name, extent in samples.sizes[0].items():
        text = re.sub(rf"(?<=[\[,]){extent}(?=[\],])", name, text)
    return text


def _size_names(title: str, names: Sequence[str]) -> dict[str, str]:
    local = LocalNames(title, FOREIGN)
    return {name: local.fresh(name) for name in names}
