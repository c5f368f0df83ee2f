"""Inputs of a tape, and the recorded values of argument parts that are not inputs."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


def spelled(name: str, path: Sequence[Any]) -> str:
    """A part of an argument as source text.

    >>> spelled("model", ("layers", 0, "bias", "per cent"))
    "model.layers[0].bias['per cent']"
    """
    named = [isinstance(key, str) and key.isidentifier() for key in path]
    return name + "".join(f".{key}" if field else f"[{key!r}]" for key, field in zip(path, named, strict=True))


@dataclass(frozen=True, slots=True)
class Input:
    """An input variable and its position among the function's arguments.

    path: field path inside the argument; ``()`` for an argument that is itself an array or a number.
    """

    variable: int
    argument: int
    name: str
    path: tuple[Any, ...] = ()

    @property
    def place(self) -> str:
        """The input as source text."""
        return spelled(self.name, self.path)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of an argument without parts of its own: its value and position; see `Input`."""

    value: Any
    argument: int
    name: str
    path: tuple[Any, ...] = ()

    @property
    def place(self) -> str:
        """The part as source text."""
        return spelled(self.name, self.path)


class Leaf(Part):
    """A number or array among the arguments."""

    __slots__ = ()


class Static(Part):
    """A part with a static value; the tape is valid only for this value.

    On an unpickled tape it is ``Ellipsis`` if the value could not be pickled.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        value = self.value
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  (whatever the value's own code raises)
            value = ...
        return Static, (value, self.argument, self.name, self.path)
