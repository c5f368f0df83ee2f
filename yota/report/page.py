"""Reports as HTML: one file that needs no network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.codegen.render import render
from yota.compilation.layout import Wrt
from yota.generation.subject import call_of, subject_of
from yota.report.collect import report_of

__all__ = ["page"]


def page(f: Callable[..., Any], args: Any, *, wrt: Wrt = None, strict: bool = False) -> str:
    """The tape explorer for ``f``, as the text of one HTML file.

    Parameters
    ----------
    f
        A plain NumPy function.
    args
        Specs or values of its arguments; see `yota.generate`. Sizes that have names are shown at small numbers.
    wrt
        What to differentiate by; see `yota.generate`.
    strict
        Whether the value has NumPy's bits; see `yota.grad`.

    Examples
    --------
    >>> import numpy as np
    >>> def energy(x):
    ...     return np.sum(x**2)
    >>> page(energy, {"x": "float64[3]"}).splitlines()[0]
    '<!doctype html>'
    """
    call, sizes = call_of(f, args).at_some_size()
    subject = subject_of(call, wrt, sizes)
    text = render("report/page.html.jinja", report=report_of(subject, sizes, strict=strict))
    # As ASCII the file reads the same wherever it is put, and however.
    return text.encode("ascii", "xmlcharrefreplace").decode()
