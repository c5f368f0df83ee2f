"""Standalone modules: generated code in files that import numpy and never yota."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yota.compilation.layout import Wrt
from yota.compilation.specialise import Target
from yota.errors import ArgumentError
from yota.generation.c import contents as c_contents
from yota.generation.contents import collected
from yota.generation.cuda import contents as cuda_contents
from yota.generation.files import check, write
from yota.generation.request import Request
from yota.generation.subject import call_of

__all__ = ["Module", "generate"]

_TARGETS = ("numpy", "c", "cuda")
_CONTENTS = ("value", "gradient", "jacobian", "hessian", "hvp")


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """Generated files.

    ``str(module)`` is the text of the first file.

    Parameters
    ----------
    files
        Text of each file by its name.
    notes
        What its user should know, such as names that could not be kept.
    """

    files: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return next(iter(self.files.values()))

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the first file to ``path``, and any others beside it; each is replaced in one step.

        Raises
        ------
        ArgumentError
            If a file is there that yota did not write, unless ``force`` is given.
        """
        places = self.places(path)
        for place in places:
            check(place, force=force)
        for place, text in places.items():
            write(place, text, force=force)

    def difference(self, path: str | os.PathLike[str]) -> str:
        """A unified diff from what is at ``path`` to this module; empty if they are the same."""
        found = []
        for place, text in self.places(path).items():
            known = place.read_bytes().decode("utf-8", "replace") if place.exists() else ""
            if known != text:
                lines = known.splitlines(keepends=True), text.splitlines(keepends=True)
                found += list(difflib.unified_diff(*lines, f"{place} (on disk)", f"{place} (generated)"))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def places(self, path: str | os.PathLike[str]) -> dict[Path, str]:
        """Where each text goes if the first goes to ``path``."""
        place = Path(path)
        texts = list(self.files.items())
        return {place if not number else place.with_name(name): text for number, (name, text) in enumerate(texts)}


def generate(
    f: Callable[..., Any],
    args: Any,
    target: str = "numpy",
    name: str | None = None,
    *,
    wrt: Wrt = None,
    with_: str | tuple[str, ...] = ("value", "gradient"),
    license: str | None = None,
    self_test: bool = False,
    strict: bool = False,
    effort: str = "high",
    seconds: float = 10.0,
    extension: bool = False,
    command: tuple[str, ...] | None = None,
    stem: str | None = None,
    sample: Callable[..., Mapping[str, Any]] | None = None,
) -> Module:
    """Generate a module that computes ``f`` and its derivatives, and never needs yota.

    Parameters
    ----------
    f
        A plain NumPy function. It is run, on values made up from ``args`` where those are specs.
    args
        What its arguments are like: a dict by name, or a sequence in order, of specs such as ``"float64[4,3]"`` (see
        `yota.specs.parse`) or of example values. A string is a spec; a fixed string is ``"'mean'"``. Extents may be
        names, ``"float64[N,3]"``, and the last ones any number of axes, ``"float64[B,...]"``: the module then serves
        all sizes, and is proved at several that it was not made from. Functions in C and CUDA take such sizes first.
    target
        ``"numpy"``: one Python file that needs numpy only. ``"c"``: a C99 file and its header that need libm only.
        ``"cuda"``: a CUDA file with kernels and functions that launch them, and a Python file that does so with CuPy.
    name
        Name of the function in the module; its own by default.
    wrt
        What to differentiate by: an argument's position or name, or a tuple of them; by default all arguments that
        have a derivative.
    with_
        Which functions the module has: ``"value"``, ``"gradient"``, ``"jacobian"``, ``"hessian"``, ``"hvp"``.
    license
        Text for the head of the file.
    self_test
        Whether ``python file.py`` checks the derivatives.
    strict
        Whether the value has NumPy's bits; see `yota.grad`.
    effort, seconds
        How long to look for few operations of scalar code; see `yota.grad`. With ``effort="high"`` it takes about so
        many seconds at most for each derivative; what is counted is steps, so that the same comes out everywhere.
    extension
        With ``target="c"``: also a Python extension module around the functions, with what Meson and pip build it by.
    command
        The words of the command that generates the module again, for its banner; made up by default.
    stem
        Name of the C files without what follows the dot, the function's by default: the one includes the other by it.
    sample
        A function that gives arguments by name, in place of those that are made up from ``args``; it is called with
        the named sizes as keywords, ``sample(N=4)``. The function is traced, and its code tested, on what it gives.

    Returns
    -------
    Module
        ``str(module)`` is its source; ``module.write(path)`` saves it.

    Raises
    ------
    ArgumentError
        If an argument, its spec, or an option is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> def energy(x):
    ...     return np.sum(x**2)
    >>> print(str(generate(energy, {"x": "float64[3]"})).splitlines()[0])
    # Generated by yota ...
    """
    if target not in _TARGETS:
        raise ArgumentError(f"target={target!r} is not known; modules can be generated for: 'numpy', 'c', 'cuda'")
    wanted = (with_,) if isinstance(with_, str) else tuple(with_)
    unknown = [each for each in wanted if each not in _CONTENTS]
    if unknown or not wanted:
        what = f"with_={unknown[0]!r} is not known" if unknown else "with_ is empty"
        raise ArgumentError(f"{what}; a module can have {', '.join(map(repr, _CONTENTS))}")
    if extension and target != "c":
        raise ArgumentError(f'extension=True goes with target="c", not {target!r}')
    call = replace(call_of(f, args, sample), search=Target(effort=effort, seconds=seconds))
    request = Request(call, target, name, wrt, wanted, license or "", self_test, strict, extension, command, stem)
    if target == "c":
        return Module(*c_contents.collected(request))
    if target == "cuda":
        return Module(*cuda_contents.collected(request))
    text, file, notes = collected(request)
    return Module({file: text}, notes)
