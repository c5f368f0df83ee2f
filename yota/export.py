"""`yota.generate`: standalone modules, which import NumPy and never yota."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from yota.errors import ArgumentError
from yota.package.assembly import check, collected, write
from yota.package.c import c_contents
from yota.package.cuda import cuda_sized
from yota.package.request import Request
from yota.package.subject import call_of
from yota.run.gradient_layout import Wrt
from yota.run.specialise import Target

__all__ = ["Module", "generate"]

_TARGETS = {
    "numpy": collected,
    "c": c_contents.collected,
    "cuda": cuda_sized.collected,
    **dict.fromkeys(("fortran", "javascript"), c_contents.collected_by_table),
}
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
        Remarks for the user, such as changed names.
    """

    files: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return next(iter(self.files.values()))

    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the first file to ``path`` and the others beside it; each file is replaced atomically.

        Raises
        ------
        ArgumentError
            If a file exists that yota did not write, unless ``force`` is True.
        """
        places = self.places(path)
        for place in places:
            check(place, force=force)
        for place, text in places.items():
            write(place, text, force=force)

    def difference(self, path: str | os.PathLike[str]) -> str:
        """A unified diff from the file at ``path`` to this module; empty if they are equal."""
        found = []
        for place, text in self.places(path).items():
            known = place.read_bytes().decode("utf-8", "replace") if place.exists() else ""
            if known != text:
                lines = known.splitlines(keepends=True), text.splitlines(keepends=True)
                found += list(difflib.unified_diff(*lines, f"{place} (on disk)", f"{place} (generated)"))
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)

    def places(self, path: str | os.PathLike[str]) -> dict[Path, str]:
        """The path of each file, if the first is written to ``path``."""
        place = Path(path)
        texts = list(self.files.items())
        return {place if not number else place.with_name(name): text for number, (name, text) in enumerate(texts)}


def generate(
    f: Callable[..., Any],
    args: Mapping[str, Any] | tuple[Any, ...] | list[Any],
    target: Literal["numpy", "c", "cuda", "fortran", "javascript"] = "numpy",
    name: str | None = None,
    *,
    wrt: Wrt = None,
    with_: str | tuple[str, ...] = ("value", "gradient"),
    license: str | None = None,
    self_test: bool = False,
    strict: bool = False,
    effort: str = "high",
    extension: bool = False,
    command: tuple[str, ...] | None = None,
    stem: str | None = None,
    sample: Callable[..., Mapping[str, Any]] | None = None,
) -> Module:
    """Generate a standalone module that computes ``f`` and its derivatives without yota.

    Parameters
    ----------
    f
        A plain NumPy function. yota runs it on sample values of ``args``.
    args
        Specs of the arguments: a dict by name, or a sequence in order. Each is a spec such as ``"float64[4,3]"``
        (see `yota.ir.specs.parse`) or an example value. A string is a spec; a fixed string is ``"'mean'"``. Named
        sizes, as in ``"float64[N,3]"``, and any number of last axes, as in ``"float64[B,...]"``, make a module for
        all sizes. The module is tested at further sizes. Functions in C and CUDA take the sizes as first arguments.
    target
        ``"numpy"``: one Python file that needs numpy only. ``"c"``: a C99 file and its header that need libm only.
        ``"cuda"``: a CUDA file with kernels and functions that launch them, and a Python file that does so with CuPy.
        ``"fortran"``: a Fortran 2018 module, whose functions C calls too. ``"javascript"``: an ES module of functions
        on numbers and ``Float64Array``.
    name
        Name of the function in the module; its own by default.
    wrt
        Arguments to differentiate by: a position, a name, or a tuple; by default all that have a derivative.
    with_
        Functions of the module: ``"value"``, ``"gradient"``, ``"jacobian"``, ``"hessian"``, ``"hvp"``.
    license
        License text for the top of the file.
    self_test
        Whether ``python file.py`` checks the derivatives.
    strict
        Whether the value equals NumPy's bit for bit; see `yota.grad`.
    effort
        Effort of the search for fewer operations; see `yota.grad`.
    extension
        With ``target="c"``: also write a Python extension module, with build files for Meson and pip.
    command
        The command that generates the module, for its header; yota composes one by default.
    stem
        Name of the C files without extension; by default the name of the function.
    sample
        A function that returns sample arguments by name, instead of generated ones. It is called with the named
        sizes as keywords, ``sample(N=4)``. yota traces the function and tests its code on these arguments.

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
        known = ", ".join(map(repr, _TARGETS))
        raise ArgumentError(f"target={target!r} is not known; modules can be generated for: {known}")
    wanted = (with_,) if isinstance(with_, str) else tuple(with_)
    unknown = [each for each in wanted if each not in _CONTENTS]
    if unknown or not wanted:
        what = f"with_={unknown[0]!r} is not known" if unknown else "with_ is empty"
        raise ArgumentError(f"{what}; a module can have {', '.join(map(repr, _CONTENTS))}")
    if extension and target != "c":
        raise ArgumentError(f'extension=True goes with target="c", not {target!r}')
    # Other languages compute trips in another order than NumPy.
    rolls = target == "numpy" or not strict
    call = replace(call_of(f, args, sample), search=Target(effort=effort), rolls=rolls, compiled=target != "numpy")
    request = Request(call, target, name, wrt, wanted, license or "", self_test, strict, extension, command, stem)
    return Module(*_TARGETS[target](request))
