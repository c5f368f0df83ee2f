"""Which operands a rule's pattern fits, and whether two patterns exclude each other."""

from __future__ import annotations

from collections.abc import Sequence

from yota.rules.model import Domain, Rule

__all__ = ["left_of", "overlap"]


def overlap(one: Rule, other: Rule) -> bool:
    """Whether some numbers of axes fit both rules.

    Examples
    --------
    >>> from yota.rules.model import Parameter
    >>> vector = Rule("tensor", "f", None, (Parameter("x", Domain("array", dimensions=("k",))),), ("y",))
    >>> matrix = Rule("tensor", "f", None, (Parameter("x", Domain("array", dimensions=("...", "m", "k"))),), ("y",))
    >>> overlap(vector, vector), overlap(vector, matrix)
    (True, False)
    """
    most = max(len(one.operands), len(other.operands)) + 1
    counts = [count for count in range(most + 1) if _takes(one, count) and _takes(other, count)]
    return any(
        all(_meet(_domain(one, position), _domain(other, position)) for position in range(count)) for count in counts
    )


def left_of(rules: Sequence[Rule], added: Sequence[Rule]) -> tuple[Rule, ...]:
    """Those of ``rules`` that still fire beside newer ones of the same name."""
    return tuple(
        rule for rule in rules if rule.target == added[0].target and not any(overlap(rule, other) for other in added)
    )


def _takes(rule: Rule, count: int) -> bool:
    operands = rule.operands
    variadic = bool(operands) and operands[-1].variadic
    return count >= len(operands) - 1 if variadic else count == len(operands)


def _domain(rule: Rule, position: int) -> Domain:
    domain = rule.operands[min(position, len(rule.operands) - 1)].domain
    assert domain is not None
    return domain


def _meet(one: Domain, other: Domain) -> bool:
    counts = range(max(len(each.dimensions or ()) for each in (one, other)) + 1)
    return any(one.accepts(count) and other.accepts(count) for count in counts)
