"""Subclasses of NumPy's arrays: which of them compute as plain arrays do, so that one can stand for the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from yota.errors import ArgumentError

_HARMLESS = frozenset(
    "__new__ __init__ __init_subclass__ __array_finalize__ __array_priority__ __doc__ __module__ __dict__ __reduce__ "
    "__setstate__ __repr__ __str__ __format__ __dir__ __copy__ __deepcopy__ __class_getitem__".split()
)
"""What a subclass may redefine and still compute as plain arrays do."""


def redefined(kind: type) -> Sequence[str]:
    """What a subclass of NumPy's arrays does in a way of its own when it computes.

    >>> redefined(np.ndarray), redefined(np.memmap), "__mul__" in redefined(np.matrix)
    ((), (), True)
    """
    # A traced value claims to be an array, and is none.
    if kind in (np.ndarray, np.memmap) or not issubclass(kind, np.ndarray):
        return ()
    own = kind.__mro__[: kind.__mro__.index(np.ndarray)]
    names = {name for base in own for name in vars(base)}
    return sorted(names & set(dir(np.ndarray)) - _HARMLESS)


def plain(value: np.ndarray, what: str) -> np.ndarray:
    """``value`` itself, an array that computes as plain ones do.

    what: names the array in the error.
    Raises ArgumentError if it computes in a way of its own, as masked arrays, matrices and arrays with units do.
    """
    found = redefined(type(value))
    if found:
        kind = type(value)
        listed = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        raise ArgumentError(
            f"{what} is a {kind.__module__}.{kind.__name__}, which computes in a way of its own ({listed}); pass a "
            "plain array: np.asarray(...)"
        )
    return value
