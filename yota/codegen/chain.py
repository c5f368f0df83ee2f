"""Which terms of a sum follow each other, once some have been merged into others."""

from __future__ import annotations

__all__ = ["Chain"]


class Chain:
    """Positions linked to their neighbours in both directions; out of range at the ends."""

    def __init__(self, length: int) -> None:
        self.before = list(range(-1, length - 1))
        self.after = list(range(1, length + 1))

    def leads(self, first: int, second: int) -> bool:
        """Whether these two are the first terms of the sum."""
        return self.before[first] < 0 and self.before[second] == first

    def remove(self, position: int) -> None:
        """Take a term out."""
        before, after = self.before[position], self.after[position]
        if before >= 0:
            self.after[before] = after
        if after < len(self.before):
            self.before[after] = before
