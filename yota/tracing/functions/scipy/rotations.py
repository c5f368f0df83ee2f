"""Rotations of scipy.spatial: what SciPy has in compiled code for NumPy's arrays, it has in Python for other ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace

_COMPILED = "scipy.spatial.transform._rotation_cy"
_WRITTEN = "scipy.spatial.transform._rotation_xp"


def _written(name: str) -> Callable[..., Any]:
    """The form of a function of quaternions; arrays have one axis before that of their numbers at least."""

    def form(trace: Trace, *args: Any, **keywords: Any) -> Any:
        own = getattr(sys.modules[_WRITTEN], name)
        return own(*args, **keywords)

    return form


for _name in (
    "align_vectors apply approx_equal as_davenport as_euler as_matrix as_mrp as_quat as_rotvec compose_quat "
    "from_davenport from_euler from_matrix from_mrp from_quat from_rotvec inv magnitude mean pow reduce setitem"
).split():
    records(_COMPILED, _name)(_written(_name))
