"""Compiled functions of SciPy that are refused by name, each with what to write instead."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from yota.tracing.forms import Trace, records

_CURES = {
    ("scipy.linalg", "cossin"): "The cosines are scipy.linalg.svdvals of a block.",
    ("scipy.linalg", "qz"): "Eigenvalues are those of scipy.linalg.eigvals(A, B).",
    ("scipy.linalg", "ordqz"): "Eigenvalues are those of scipy.linalg.eigvals(A, B).",
    ("scipy.signal", "cspline2d"): "Use scipy.ndimage.spline_filter.",
    ("scipy.signal", "qspline2d"): "Use scipy.ndimage.spline_filter with order=2.",
    ("scipy.signal", "spline_filter"): "Use scipy.ndimage.spline_filter.",
    ("scipy.special", "ellip_harm"): "Nobody has written the derivatives of ellipsoidal harmonics.",
    ("scipy.special", "ellip_harm_2"): "Nobody has written the derivatives of ellipsoidal harmonics.",
    ("scipy.special", "ellip_normal"): "Nobody has written the derivatives of ellipsoidal harmonics.",
}


def _refuse(name: str, cure: str, trace: Trace, *args: Any, **keywords: Any) -> NoReturn:
    raise trace.unrecorded(name, cure)


for (_module, _name), _cure in _CURES.items():
    records(_module, _name)(functools.partial(_refuse, f"{_module}.{_name}", _cure))
