"""Greedy choices taken back: sums are factored anew, one after the other, beside all that has been found already."""

from __future__ import annotations

import random
from collections.abc import Iterator

from yota.codegen.division import divide
from yota.codegen.factor import Options, factor
from yota.codegen.forest import Forest, Sum
from yota.codegen.recall import Scales

__all__ = ["revise"]

_SWEEPS = 8
_IDLE = 2
"""Sweeps without gain, one after the other, after which nothing more is expected."""
_EFFORT = 6_000
"""Attempts, times the terms that each of them looks at, after which the search ends."""
_MOST_READERS = 6
"""Sums that are factored anew together where they lose a divisor that they had in common."""


def revise(planted: Forest, forest: Forest, seed: int = 1) -> Forest:
    """``forest`` in no more operations.

    Parameters
    ----------
    planted
        The same before it was factored.
    seed
        Of all choices.
    """
    return _Revision(planted, forest, random.Random(seed)).run()


class _Revision:
    def __init__(self, planted: Forest, forest: Forest, choose: random.Random) -> None:
        self.planted = planted.sums
        self.choose = choose
        self.forest = forest.copy()
        self.forest.tidy(self.planted)
        self.scales = Scales()
        self.least = self.scales.weight(self.forest)
        terms = sum(len(self.planted[atom].alive()) for atom in self.forest.living() if atom in self.planted)
        self.left = _EFFORT // max(terms, 1)

    def run(self) -> Forest:
        first, start, idle = self.least, self.forest, 0
        for _ in range(_SWEEPS):
            before = self.least
            moves = list(self._moves())
            self.choose.shuffle(moves)
            moves, self.left = moves[: self.left], self.left - len(moves[: self.left])
            for atom, divided in moves:
                self._attempt(atom, divided)
            idle = idle + 1 if self.least == before else 0
            if idle == _IDLE:
                break
        # What changed without gain on the way is not worth another look of the code.
        return self.forest if self.least < first else start

    def _moves(self) -> Iterator[tuple[int, bool]]:
        """What to take apart: a sum that was planted, or a divisor; and whether to look for whole sums in it first."""
        for atom in self.forest.living():
            if atom not in self.planted:
                if atom in self.forest.sums:
                    yield atom, False
            elif (length := len(self.planted[atom].alive())) > 1:
                yield atom, False
                if length > 2:
                    yield atom, True

    def _attempt(self, atom: int, divided: bool) -> None:
        """Factor anew what ``atom`` stands for or serves, and stay with that unless it takes more operations."""
        if atom not in self.forest.living():
            return
        found = self.forest.copy()
        for each in [atom] if atom in self.planted else self._readers(atom):
            found.sums[each] = Sum(list(self.planted[each].alive()), self.planted[each].ordered)
        if divided:
            divide(found, atom, self.planted, self.choose)
        most, seed = self.choose.choice((1024, 1024, 1, 2)), self.choose.randrange(1, 10**6)
        factor(found, Options(seed=seed, equal_outside=self.choose.random() < 0.3, most=most))
        found.tidy(self.planted)
        total = self.scales.weight(found)
        if total <= self.least:
            self.least, self.forest = total, found

    def _readers(self, divisor: int) -> list[int]:
        """Sums that were planted and now read ``divisor``, or divisors made from it."""
        reading: dict[int, list[int]] = {}
        for atom in self.forest.living():
            for _, monomial in self.forest.parts(atom):
                for inner, _ in monomial:
                    reading.setdefault(inner, []).append(atom)
        found: dict[int, None] = {}
        pending = [divisor]
        seen = {divisor}
        while pending:
            for each in reading.get(pending.pop(), ()):
                if each in self.planted:
                    found[each] = None
                elif each in self.forest.sums and each not in seen:
                    seen.add(each)
                    pending.append(each)
        readers = list(found)
        return readers if len(readers) <= _MOST_READERS else self.choose.sample(readers, _MOST_READERS)
