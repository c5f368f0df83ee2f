"""Reports as HTML: one file that works offline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from yota.codegen.render import render
from yota.compilation.layout import Wrt
from yota.errors import ArgumentError
from yota.generation.subject import call_of, subject_of
from yota.report.collect import report_of

TARGETS = ("numpy", "c", "cuda")
"""Targets that a report supports."""


def page(f: Callable[..., Any], args: Any, *, target: str = "numpy", wrt: Wrt = None, strict: bool = False) -> str:
    """The tape explorer for ``f``, as the text of one HTML file.

    Parameters
    ----------
    f
        A plain NumPy function.
    args
        Specs or values of its arguments; see `yota.generate`. Named sizes have small values.
    target
        Target of the code: ``"numpy"``, ``"c"`` or ``"cuda"``.
    wrt
        Arguments to differentiate by; see `yota.generate`.
    strict
        Whether the value equals NumPy's bit for bit; see `yota.grad`.

    Raises
    ------
    ArgumentError
        If an argument, its spec, or the target is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> def energy(x):
    ...     return np.sum(x**2)
    >>> page(energy, {"x": "float64[3]"}).splitlines()[0]
    '<!doctype html>'
    """
    if target not in TARGETS:
        raise ArgumentError(f"target={target!r} is not known; code can be shown for: 'numpy', 'c', 'cuda'")
    call, sizes = call_of(f, args).at_some_size()
    subject = subject_of(replace(call, rolls=target != "cuda"), wrt, sizes)
    text = render("report/page.html.jinja", report=report_of(subject, sizes, target=target, strict=strict))
    # An ASCII file does not depend on the encoding.
    return text.encode("ascii", "xmlcharrefreplace").decode()
