"""Code at several sizes as code for all of them: numbers that differ are written by the names of sizes."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from yota.codegen.c.lines import filled
from yota.errors import ArgumentError
from yota.generation.c.arithmetic import ATOM, PRODUCT, SUM, Spelled, whole
from yota.generation.sizes import Samples

__all__ = ["Conditions", "DifferentError", "Texts"]

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])|(?<=[A-Za-z_])\d+(?![A-Za-z0-9])")
"""A number, or one in a name."""
_COLUMNS = 100
_VECTORS = re.compile(r" simdlen\(\d+\)")
_WORDS = {" - ": "_minus_", " + ": "_plus_", " * ": "_times_", " / ": "_over_", "(": "", ")": ""}
_LOOP = re.compile(r"for \(ptrdiff_t \w+ = (.+?); \w+ < (.+?);")
_PLACE = re.compile(r"^\s*(\w+)\[(\d+)\] \+?= ")


class DifferentError(ArgumentError):
    """Code at several sizes differs in more than numbers."""


class Conditions:
    """What sizes must be for code to hold: expressions of them that are not negative.

    Parameters
    ----------
    samples
        The sizes at which the code was made.
    names
        What sizes are called in C.
    """

    def __init__(self, samples: Samples, names: Mapping[str, str]) -> None:
        self.samples, self.names = samples, names
        self._least: dict[str, int] = dict.fromkeys(samples.names, 1)
        self._others: dict[str, str] = {}

    def demand(self, values: Sequence[int]) -> None:
        """What has ``values`` at the samples must not be negative."""
        if min(values) < 0:
            raise ArgumentError("the function has no value at some of the sizes that it was tried at")
        if len(set(values)) == 1 or self.samples.never_negative(values):
            return
        for name in self.samples.names:
            distance = {size[name] - value for size, value in zip(self.samples.sizes, values, strict=True)}
            if len(distance) == 1:
                self._least[name] = max(self._least[name], distance.pop())
                return
        text = self.samples.whole(values)
        if text is not None:
            found = str(whole(text, self.names))
            self._others[_compared(found, "<", ">")] = _compared(found, ">=", "<=")

    def demand_at_most(self, most: int, values: Sequence[int]) -> None:
        """What has ``values`` at the samples must not be more than ``most``."""
        text = self.samples.whole(values)
        if len(set(values)) == 1 or text is None:
            self.demand([most - value for value in values])
        else:
            found = str(whole(text, self.names))
            self._others[f"{found} > {most}"] = f"{found} <= {most}"

    @property
    def least(self) -> dict[str, int]:
        """The smallest extent of each size that is certain to do."""
        return dict(self._least)

    def failed(self) -> str:
        """The C condition under which sizes will not do."""
        found = [f"{self.names[name]} < {least}" for name, least in self._least.items()]
        return " || ".join([*found, *self._others])

    def described(self) -> str:
        """What sizes must be, in words."""
        found = [f"{self.names[name]} >= {least}" for name, least in self._least.items()]
        return ", ".join([*found, *self._others.values()])


def _compared(text: str, sign: str, turned: str) -> str:
    """An expression beside 0, or what it takes away beside the number that it takes it from."""
    number, minus, rest = text.partition(" - ")
    if minus and number.isdigit() and not re.search(r" [-+] ", rest):
        return f"{rest} {turned} {number}"
    return f"{text} {sign} 0"


class Texts:
    """Writes texts that were made at each sample as one."""

    def __init__(self, samples: Samples, names: Mapping[str, str], conditions: Conditions) -> None:
        self.samples, self.names, self.conditions = samples, names, conditions
        self._known: dict[tuple[int, ...], Spelled] = {}

    def remarks(self, each: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Lines of text."""
        return tuple(map(self.line, zip(*each, strict=True)))

    def lines(self, each: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """Lines of code; what they rely on is demanded."""
        # How long vectors should be for a short loop cannot be said of all lengths.
        each = [[_VECTORS.sub("", line) for line in _statements(lines)] for lines in each]
        if len({len(lines) for lines in each}) != 1:
            longest = max(each, key=len)
            other = min(each, key=len)
            pairs = zip(longest, [*other, *[""] * len(longest)], strict=False)
            raise _different(*next(pair for pair in pairs if _NUMBER.sub("", pair[0]) != _NUMBER.sub("", pair[1])))
        rows = list(zip(*each, strict=True))
        self._demand_order(rows)
        return tuple(line for row in rows for line in _broken(self.line(row)))

    def line(self, each: Sequence[str]) -> str:
        """One line."""
        first = each[0]
        if all(text == first for text in each):
            return first
        frames = {_NUMBER.sub("#", text) for text in each}
        if len(frames) != 1:
            raise _different(first, next(text for text in each if _NUMBER.sub("#", text) != _NUMBER.sub("#", first)))
        found = [_NUMBER.findall(text) for text in each]
        pieces, end = [], 0
        for number, match in enumerate(_NUMBER.finditer(first)):
            values = tuple(int(numbers[number]) for numbers in found)
            pieces.append(first[end : match.start()])
            end = match.end()
            pieces.append(match[0] if len(set(values)) == 1 else self._placed(values, first, match))
        return "".join([*pieces, first[end:]])

    def _placed(self, values: tuple[int, ...], line: str, match: re.Match[str]) -> str:
        """The number as an expression where it stands."""
        text = self.number(values, line)
        if re.search(r"[A-Za-z_]\w*$", line[: match.start()]):
            return functools.reduce(lambda word, sign: word.replace(sign, _WORDS[sign]), _WORDS, str(text))
        before, after = line[: match.start()].rstrip(), line[match.end() :].lstrip()
        if after.startswith("* sizeof"):
            return f"(size_t){text.within(ATOM)}"
        return text.within(max(_tightness(before, text), PRODUCT if after.startswith(("*", "/")) else SUM))

    def number(self, values: tuple[int, ...], line: str = "") -> Spelled:
        """The expression that has ``values`` at the samples."""
        if values not in self._known:
            text = self.samples.whole(values)
            if text is None:
                shown = ", ".join(map(str, values[:3]))
                raise ArgumentError(f"`{line.strip()}` has a number that is no polynomial of the sizes: {shown}, ...")
            self._known[values] = whole(text, self.names)
        return self._known[values]

    def _demand_order(self, rows: Sequence[Sequence[str]]) -> None:
        """Loops end where they begin or later, and elements that are put in place one by one lie apart."""
        places: dict[str, list[tuple[int, ...]]] = {}
        for row in rows:
            ends = [match for match in map(_LOOP.search, row) if match]
            if len(ends) == len(row):
                self._demand_loop([(match[1], match[2]) for match in ends])
            put = [match for match in map(_PLACE.match, row) if match]
            if len(put) == len(row):
                places.setdefault(put[0][1], []).append(tuple(int(match[2]) for match in put))
        for found in places.values():
            ordered = sorted(set(found))
            for one, other in itertools.pairwise(ordered):
                self.conditions.demand([after - before - 1 for before, after in zip(one, other, strict=True)])

    def _demand_loop(self, ends: Sequence[tuple[str, str]]) -> None:
        known = [(start, stop) for start, stop in ends if start.isdigit() and stop.isdigit()]
        if len(known) == len(ends):
            self.conditions.demand([int(stop) - int(start) for start, stop in known])


def _statements(lines: Iterable[str]) -> list[str]:
    """Each statement in one line: where it was broken depends on how long its numbers are."""
    found: list[str] = []
    open_one = False
    for line in lines:
        if open_one:
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
        last = found[-1].strip()
        head = last.startswith(("for (", "if (", "else")) and last.count("(") == last.count(")")
        comment = last.startswith(("#", "PRAGMA", "/*", "*"))
        open_one = bool(last) and not (head or comment or last.endswith((";", "{", "}", ":")))
    return found


def _broken(line: str) -> list[str]:
    """The lines of a statement."""
    statement = line.lstrip(" ")
    if statement.startswith(("for (", "if (")):
        return [line]
    indent = line[: len(line) - len(statement)]
    return [f"{indent}{part}" for part in filled(statement, _COLUMNS - len(indent))] if statement else [line]


def _tightness(before: str, text: Spelled) -> int:
    """How tightly a number must bind after what stands ``before`` it."""
    if before.endswith(("/", "%")):
        return ATOM
    if before.endswith("*"):
        return ATOM if "/" in text else PRODUCT
    return PRODUCT if before.endswith("-") else ATOM if re.search(r"\(\w+\)$", before) else SUM


def _different(one: str, other: str) -> DifferentError:
    return DifferentError(
        "the code for one size and for another differ in more than numbers:\n"
        f"    {one.strip()[:96]}\n    {other.strip()[:96]}\n"
        'Fix the sizes, as in float64[100,3], or generate for NumPy (target="numpy")'
    )
