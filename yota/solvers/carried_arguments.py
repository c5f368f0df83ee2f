"""Arguments of SciPy's functions in another process: data, and what NumPy and SciPy define."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.calls import path_of
from yota.ir.serialised import Carried, Unwritable
from yota.structures import package_of

_PLAIN = (bool, int, float, complex, str, type(None))


class _Array(Carried):
    """An array; one that is not captured is a copy, which SciPy may write into."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        array = state["array"]
        return array if array.flags.writeable else np.array(array)


class _Object(Carried):
    """An object of a class that SciPy defines, such as ``Bounds``."""

    def __init__(self, kind: type, attributes: Any) -> None:
        self.kind, self.attributes = kind, attributes

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        made = object.__new__(state["kind"])
        made.__dict__.update(state["attributes"])
        return made


def written(value: Any, what: str) -> Any:
    """``value`` as another process reads it; ``what`` names it.

    Raises Unwritable if it is an object of this process.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, (Carried, np.generic, np.dtype)):
        return value
    if kind is np.ndarray:
        return _Array(value)
    if kind in (list, tuple):
        return kind(written(each, what) for each in value)
    if kind is dict:
        return {key: written(each, f"{what}[{key!r}]") for key, each in value.items()}
    if path_of(value):
        return value
    if package_of(kind) == "scipy" and hasattr(value, "__dict__") and path_of(kind):
        return _Object(kind, written(dict(vars(value)), what))
    raise Unwritable(f"{what} is a {kind.__qualname__} of this process")
