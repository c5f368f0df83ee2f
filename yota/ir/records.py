"""The base of small immutable records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(slots=True)
class Record:
    """A small record of a tape that never changes: an op, a type, a slice, the form of a call.

    Its classes are no frozen dataclasses, which take five to ten times as long to create: a pass creates thousands.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    """The names of the fields, as `dataclasses` sets them."""

    def contents(self) -> tuple[Any, ...]:
        """The values of the fields in order."""
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __reduce__(self) -> tuple[Any, ...]:
        # Protocols 0 and 1 of pickle do not know slots.
        return type(self), self.contents()
