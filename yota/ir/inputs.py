"""What a tape takes: its inputs, and what the parts of the arguments that are no inputs held when it was recorded."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Input", "Part", "Static", "spelled"]


def spelled(name: str, path: Sequence[Any]) -> str:
    """A part of an argument as it is written.

    Examples
    --------
    >>> spelled("model", ("layers", 0, "bias", "per cent"))
    "model.layers[0].bias['per cent']"
    """
    named = [isinstance(key, str) and key.isidentifier() for key in path]
    return name + "".join(f".{key}" if field else f"[{key!r}]" for key, field in zip(path, named, strict=True))


@dataclass(frozen=True, slots=True)
class Input:
    """An input variable and where it sits among the function's arguments.

    Parameters
    ----------
    variable
        Its number on the tape.
    argument
        Position of the argument.
    name
        Name of the argument in the function's signature.
    path
        Field path inside the argument; ``()`` for an argument that is itself an array or a number.
    """

    variable: int
    argument: int
    name: str
    path: tuple[Any, ...] = ()

    @property
    def place(self) -> str:
        """The input as it is written."""
        return spelled(self.name, self.path)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of an argument that has no parts itself: its value and where it sits; see `Input`."""

    value: Any
    argument: int
    name: str
    path: tuple[Any, ...] = ()

    @property
    def place(self) -> str:
        """The part as it is written."""
        return spelled(self.name, self.path)


class Static(Part):
    """A part whose value went into the tape, which holds for this value alone.

    On a tape that was pickled it is ``Ellipsis`` where the value could not be.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        value = self.value
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  (whatever the value's own code raises)
            value = ...
        return Static, (value, self.argument, self.name, self.path)
