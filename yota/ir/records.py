"""The base of small immutable records."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any


@functools.cache
def _names(kind: type[Record]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


@dataclass(slots=True)
class Record:
    """A small record of a tape that never changes: an op, a type, a slice, the form of a call.

    Its classes are no frozen dataclasses, which take five to ten times as long to create: a pass creates thousands.
    """

    def contents(self) -> tuple[Any, ...]:
        """The values of the fields in order."""
        return tuple([getattr(self, name) for name in _names(type(self))])

    def __reduce__(self) -> tuple[Any, ...]:
        # Protocols 0 and 1 of pickle do not know slots.
        return type(self), self.contents()
