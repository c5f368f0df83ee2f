"""Sizes at which a function may take other decisions than at those of its recordings."""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError
from yota.ir.location import Location
from yota.tracing.source_lines import source_line
from yota.tracing.traced_sizes import ESCAPE, Decision, Expression
from yota.transform.sizes.evaluation import evaluated, parsed
from yota.transform.sizes.size_expressions import Samples

_FIRST = 5
"""The smallest size at which recordings are compared."""
_FEW = 3
"""Recordings in which an expression must occur to be found from its values."""
_DENSE, _LARGEST = 4096, 2**31
_GRID = 40
"""Sizes of each name that are looked at together with those of the others."""
_MOST_PROBES, _MOST_RULES = 32, 512
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_FUNCTIONS: dict[str, Callable[..., Any]] = {"trunc": np.trunc, "floor": np.floor, "ceil": np.ceil, "round": np.round}
_Key: TypeAlias = "tuple[Location | None, str, Any, int]"


class Branches:
    """The decisions of recordings at several sizes, as functions of the sizes."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._sizes: list[Mapping[str, int]] = []
        self._seen: dict[_Key, dict[int, Decision]] = {}
        self._changes: dict[Any, list[int]] = {}
        self.escaped = False
        """Whether the function made something of a size that does not tell what it does with it, such as its digits."""

    def add(self, size: Mapping[str, int], decisions: Sequence[Decision]) -> bool:
        """Take in the decisions of a recording at ``size``; whether there were some that no other one had."""
        number, known = len(self._sizes), len(self._seen)
        self._sizes.append(size)
        count: Counter[Any] = Counter()
        self.escaped |= any(each.operation == ESCAPE for each in decisions)
        for each in decisions:
            if each.operation == ESCAPE:
                continue
            key = (each.location, each.operation, _form(each.operands))
            self._seen.setdefault((*key, count[key]), {})[number] = each
            count[key] += 1
        return len(self._seen) > known

    def untried(self) -> Iterator[tuple[dict[str, int], Decision]]:
        """Sizes, one for each new combination of outcomes, with a decision that comes out otherwise there."""
        rules = self._rules()
        if not rules:
            return
        if len(rules) > _MOST_RULES:
            raise self._many(rules[-1], len(rules))
        # What is alike at a small size and at a larger one is tried at both: the code need not take the small one.
        tried = {(self._outcomes(rules, [size])[0], _is_small(size)) for size in self._sizes}
        candidates = self._candidates(rules)
        rows = self._outcomes(rules, candidates)
        found: dict[tuple[tuple[Any, ...], bool], dict[str, int]] = {}
        for size, row in sorted(zip(candidates, rows, strict=True), key=lambda pair: sum(pair[0].values())):
            if (row, _is_small(size)) not in tried:
                found.setdefault((row, _is_small(size)), dict(size))
        base = self._outcomes(rules, self._sizes[:1])[0]
        many = sum(not small for _, small in found)
        for (row, _), size in found.items():
            different = next((rule for rule, one, two in zip(rules, base, row, strict=True) if one != two), rules[0])
            if many > _MOST_PROBES:
                raise self._many(different, many)
            yield size, different.decision

    def _many(self, rule: _Rule, ways: int) -> ArgumentError:
        return ArgumentError(
            f"{place_of(rule.decision.location)}decisions on {', '.join(self.names)} combine in "
            f"{ways} ways, too many to try. Fix the size, as in float64[100], or write it without them"
        )

    def _rules(self) -> list[_Rule]:
        """The decisions that can come out in different ways, each once."""
        texts: dict[str, None] = dict.fromkeys(self.names)
        found: dict[Any, _Rule] = {}
        for seen in sorted(self._seen.values(), key=len, reverse=True):
            first = next(iter(seen.values()))
            outcomes = {each.outcome for each in seen.values()}
            if first.operation not in _COMPARISONS and len(outcomes) > 1:
                continue  # A number that changes with the sizes is part of the tape, or of further decisions.
            sizes = [self._sizes[number] for number in seen]
            operands = tuple(
                _fitted([each.operands[place] for each in seen.values()], self.names, sizes, texts, first.location)
                for place in range(len(first.operands))
            )
            found.setdefault((first.operation, operands), _Rule(replace(first, operands=operands)))
        return list(found.values())

    def _outcomes(self, rules: Sequence[_Rule], sizes: Sequence[Mapping[str, int]]) -> list[tuple[Any, ...]]:
        columns = {name: np.array([size[name] for size in sizes], np.float64) for name in self.names}
        return list(zip(*(rule.outcomes(columns) for rule in rules), strict=True))

    def _candidates(self, rules: Sequence[_Rule]) -> list[dict[str, int]]:
        """Sizes among which every outcome occurs: small ones, and those next to which an outcome changes."""
        small = {name: _FIRST + place for place, name in enumerate(self.names)}
        found = [{**small, name: extent} for name in self.names for extent in range(1, _GRID)]
        if 1 < len(self.names) < 4 and any(len(rule.names) > 1 for rule in rules):
            grid = range(1, _GRID if len(self.names) == 2 else 14)
            rows = itertools.product(grid, repeat=len(self.names))
            found += [dict(zip(self.names, each, strict=True)) for each in rows]
        far = []
        for name in self.names:
            own = [rule for rule in rules if name in rule.names]
            changes = sorted({change for rule in own for change in self._changes_of(rule, name, small)})
            found += [{**small, name: extent} for extent in changes]
            far.append([small[name], *(extent for extent in changes if extent >= _FIRST)])
        if len(far) > 1 and math.prod(map(len, far)) <= _DENSE:
            found += [dict(zip(self.names, each, strict=True)) for each in itertools.product(*far)]
        return found

    def _changes_of(self, rule: _Rule, name: str, others: Mapping[str, int]) -> list[int]:
        key = (rule.decision.operation, rule.decision.operands, rule.decision.outcome, name)
        if key not in self._changes:
            self._changes[key] = rule.changes(name, others)
        return self._changes[key]


class _Rule:
    """A decision whose operands are expressions of the names of sizes."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.names = frozenset(_names_in(decision.operands))
        self._is_comparison = decision.operation in _COMPARISONS

    def _value(self, columns: Mapping[str, Any]) -> Any:
        """What changes where the outcome may: which of two numbers is larger, or whether a number is the same."""
        operands = [_computed(each, columns) for each in self.decision.operands]
        with np.errstate(all="ignore"):
            if self._is_comparison:
                return np.sign(np.subtract(*operands, dtype=np.float64))
            return _applied(self.decision.operation, operands) == self.decision.outcome

    def outcomes(self, columns: Mapping[str, Any]) -> list[Any]:
        count = len(next(iter(columns.values())))
        value = np.broadcast_to(self._value(columns), (count,))
        if self._is_comparison:
            value = getattr(operator, self.decision.operation)(value, 0)
        return list(value.tolist())

    def changes(self, name: str, others: Mapping[str, int]) -> list[int]:
        """Sizes of ``name`` from which on the outcome is another one."""

        def values(extents: Any) -> Any:
            columns = {each: np.full(len(extents), float(extent)) for each, extent in others.items()}
            extents = np.asarray(extents, np.float64)
            return np.broadcast_to(self._value({**columns, name: extents}), extents.shape)

        known = values(_EXTENTS)
        found = []
        for place in np.nonzero(known[1:] != known[:-1])[0][:_DENSE]:
            found += _between(values, int(_EXTENTS[place]), int(_EXTENTS[place + 1]))
        return found


def _extents() -> Iterator[int]:
    """Each extent below one, and from there on some in each octave."""
    yield from range(1, _DENSE)
    extent = _DENSE
    while extent < _LARGEST:
        yield extent
        extent = extent * 9 // 8
    yield extent


_EXTENTS = np.fromiter(_extents(), np.int64)


def _between(values: Callable[[Any], Any], low: int, high: int) -> list[int]:
    """Where a value changes, which is another one at ``high`` than at ``low``: once, or through one further value."""
    start, end = values([low, high])
    found = []
    for is_end in (False, True):
        below, above = low, high
        while above - below > 1:
            middle = (below + above) // 2
            value = values([middle])[0]
            below, above = (below, middle) if (value == end if is_end else value != start) else (middle, above)
        found.append(above)
    return found


def _names_in(expression: Any) -> Iterator[str]:
    if isinstance(expression, tuple) and expression[:1] == ("extent",):
        yield from (node.id for node in ast.walk(parsed(expression[1])) if isinstance(node, ast.Name))
    elif isinstance(expression, tuple):
        for part in expression:
            yield from _names_in(part)


def _is_small(size: Mapping[str, int]) -> bool:
    return min(size.values()) < _FIRST


def _form(expression: Any) -> Any:
    """An expression without its numbers."""
    if not isinstance(expression, tuple):
        return None
    if expression and expression[0] == "extent":
        return "extent"
    return tuple(part if isinstance(part, str) else _form(part) for part in expression)


def _fitted(
    expressions: Sequence[Expression],
    names: Sequence[str],
    sizes: Sequence[Mapping[str, int]],
    texts: dict[str, None],
    location: Location | None,
) -> Any:
    """The expression that all of ``expressions``, one for each size, are cases of; ``texts`` are those of extents."""
    first = expressions[0]
    if isinstance(first, tuple) and first[0] != "extent":
        parts = [
            _fitted([each[place] for each in expressions], names, sizes, texts, location)  # type: ignore[index]
            for place in range(1, len(first))
        ]
        return (first[0], *parts)
    numbers = [each[1] if isinstance(each, tuple) else each for each in expressions]
    if not isinstance(first, tuple) and len(set(numbers)) == 1:
        return first
    known = [text for text in texts if all(evaluated(text, size) == n for size, n in zip(sizes, numbers, strict=True))]
    text: str | None = known[0] if known else None
    if text is None and all(isinstance(number, int) for number in numbers) and len(sizes) >= _FEW:
        text = Samples(tuple(names), tuple(sizes)).whole([int(number) for number in numbers])
    if text is None and isinstance(first, tuple) and len(set(numbers)) == 1:
        text = str(numbers[0])
    if text is None:
        shown = ", ".join(map(str, numbers[:3]))
        raise ArgumentError(
            f"{place_of(location)}a decision depends on {', '.join(names)} by a number that is no polynomial of it "
            f"({shown}, ...). Fix the size, as in float64[100], or write it without the decision"
        )
    if isinstance(first, tuple):
        texts[text] = None
    return ("extent", text)


def _computed(expression: Any, columns: Mapping[str, Any]) -> Any:
    if not isinstance(expression, tuple):
        return expression
    if expression[0] == "extent":
        return evaluated(expression[1], columns)
    with np.errstate(all="ignore"):
        return _applied(expression[0], [_computed(part, columns) for part in expression[1:]])


def _applied(operation: str, operands: Sequence[Any]) -> Any:
    if operation in ("and_", "or_", "xor", "lshift", "rshift"):
        operands = [np.asarray(operand).astype(np.int64) for operand in operands]
    function = _FUNCTIONS.get(operation) or getattr(operator, operation)
    if operation in ("floordiv", "mod", "pow", "truediv"):
        operands = [np.asarray(operand, np.float64) for operand in operands]
    if operation == "round" and len(operands) > 1:
        return np.round(operands[0], int(operands[1]))
    return function(*operands)


def place_of(location: Location | None) -> str:
    """Function, line and text of a place, to begin a message with."""
    if location is None:
        return ""
    return f"{location.function}, line {location.line}: `{source_line(location)}`: "
