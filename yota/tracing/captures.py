"""Arrays from outside of the traced function: inputs that are read at each call, or constants with a known content."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.tape import TapeBuilder
from yota.ir.types import type_of
from yota.tracing.observation import Observation
from yota.tracing.source_lines import users

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
    """``value`` itself; ArgumentError, about ``what``, if it is an array that computes in a way of its own."""
    found = redefined(type(value))
    if found:
        kind = type(value)
        listed = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
        cure = "pass a plain array: np.asarray(...)"
        if isinstance(value, np.ma.MaskedArray):
            cure = "pass its .data, and make it inside of the function with np.ma.array; or call np.ma.add and the like"
        raise ArgumentError(
            f"{what} is a {kind.__module__}.{kind.__name__}, which computes in a way of its own ({listed}); {cure}"
        )
    return value


_array = np.array  # while a trace runs, a recording form stands in its place
_LITERAL = 16
"""Up to this many elements a constant array is worth spelling out in generated code."""


class Captures:
    """The arrays from outside that a recording met: inputs if uses are ``seen``, else constants."""

    def __init__(self, builder: TapeBuilder, values: dict[int, Any], seen: Observation | None) -> None:
        self._builder, self._values, self._seen = builder, values, seen
        self.inputs = builder.captured
        """Those that are inputs, by variable."""
        self.watched: list[tuple[Any, Any]] = []
        """Those that are constants, each with the content that the tape relies on."""
        self._known: dict[int, tuple[Any, Any, int]] = {}

    def array(self, value: np.ndarray) -> int:
        """The variable for an array of the user's."""
        # The user may write into it later: the tape never relies on that nobody does.
        if self._seen is not None:
            self._seen.use(value)
        known = self._known.get(id(value))
        native = value if type(value) is np.ndarray and value.dtype.isnative else acceptable(value)
        # By bits, which tell 0.0 from -0.0.
        if known is not None and known[1].shape == value.shape and known[1].tobytes() == native.tobytes():
            return known[2]
        snapshot = frozen(_array(native, order="K"))
        fresh = self._seen is not None and known is None
        if fresh and value.dtype.kind in "fc" and value.size > _LITERAL and value.dtype.isnative:
            return self._input(value, snapshot)
        variable = self._builder.constant(snapshot)
        self.watched.append((value, snapshot))
        name = name_of(value)
        if name is not None:
            self._builder.names.setdefault(variable, name)
        return self._noted(value, snapshot, variable)

    def _input(self, value: Any, snapshot: np.ndarray) -> int:
        variable = self._builder.input(type_of(snapshot), -1, name_of(value) or "data", ())
        self.inputs[variable] = value
        return self._noted(value, snapshot, variable)

    def _noted(self, value: Any, snapshot: np.ndarray, variable: int) -> int:
        self._values[variable] = snapshot
        self._known[id(value)] = (value, snapshot, variable)
        return variable

    def written(self, value: np.ndarray) -> None:
        """Note that a library wrote into an array of its own, whose content so far nothing relies on any more."""
        self.watched[:] = [each for each in self.watched if each[0] is not value]
        self._known.pop(id(value), None)

    def from_device(self, value: Any) -> int:
        """An array on the GPU is an input always: nobody would fetch it at each call to see whether it changed."""
        known = self._known.get(id(value))
        return self._input(value, frozen(value.get())) if known is None else known[2]

    def rely_on(self, inner: Captures) -> None:
        """Watch what a recording inside of this one relies on: its tape becomes part of this one's."""
        for value, snapshot in inner.watched:
            if not any(value is known and np.array_equal(snapshot, held) for known, held in self.watched):
                self.watched.append((value, snapshot))


def name_of(value: Any) -> str | None:
    """The name by which the user's code knows an array, if it has one."""
    for user in users(sys._getframe(1), inside=True):
        for name, other in [*user.f_locals.items(), *user.f_globals.items()]:
            if other is value and not name.startswith(("_", ".")):
                return name
    return None


def acceptable(value: Any) -> Any:
    """A number or array in the machine's order of bytes; refused if it is neither."""
    if type(value) is float or type(value) is np.float64:
        return value
    if type(value) is int and not -(2**63) <= value < 2**64:
        return float(value)  # as Python and NumPy take it beside floating-point numbers
    dtype = type_of(value).dtype
    if dtype.kind not in "biufc":
        raise ArgumentError(f"values of dtype {dtype} cannot be traced; use floating or complex numbers")
    computing_plainly(value)
    if not dtype.isnative:
        return value.astype(dtype.newbyteorder("="))
    return value


def computing_plainly(value: Any) -> Any:
    """``value``; refused if it is an array that computes in a way of its own."""
    if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
        plain(value, f"{name_of(value) or 'a value'}, an array from outside of the function,")
    return value


def frozen(value: Any) -> Any:
    """``value``, made read-only if it is an array."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value


def is_frozen(value: np.ndarray) -> bool:
    """Whether an array that cannot be written seems to come from `frozen`, and not from the function itself."""
    base: Any = value.base
    alike = isinstance(base, np.ndarray) and base.shape == value.shape and base.strides == value.strides
    return bool(alike and base.flags.writeable and not value.flags.writeable)


def copied(value: Any) -> Any:
    """``value``, or a copy that can be written if it is an array."""
    return value.copy() if isinstance(value, np.ndarray) else value
