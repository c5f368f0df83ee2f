"""Operands and keywords at which a tensor rule is proved: from the catalogue, or made up from the rule's pattern."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from yota.rules.language.model import Literal, Parameter, Rule
from yota.rules.laws.sampling import sample
from yota.rules.registry import Registry

_EXTENT = 3
_MOST = 12
_WIDTH = 60
_VALUES: dict[str, tuple[Any, ...]] = {"axis": (None, 0, -1, (0, -1)), "keepdims": (False, True)}
"""What keywords with names that NumPy uses may be."""


@dataclass(frozen=True, slots=True, eq=False)
class Specimen:
    """A call of a primitive.

    symmetric: whether its operands stay Hermitian when they are moved.
    """

    operands: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    symmetric: bool = False

    def __str__(self) -> str:
        parts = [f"{each.dtype}{list(each.shape)}" for each in map(np.asarray, self.operands)]
        parts += [f"{name}={value!r}" for name, value in self.keywords.items()]
        shown = ", ".join(parts)
        return shown if len(shown) <= _WIDTH else f"{shown[:_WIDTH]}..."


@cache
def _catalogue() -> dict[str, tuple[Specimen, ...]]:
    from yota.rules.proof import cases

    found: dict[str, list[Specimen]] = {}
    for free, calls in ((True, [*cases.CASES, *cases.SCIPY]), (False, cases.SYMMETRIC)):
        for name, given, keywords in calls:
            found.setdefault(name, []).append(Specimen(given, keywords, not free))
    return {name: tuple(each) for name, each in found.items()} | dict.fromkeys(cases.UNSTEADY, ())


def specimens(rule: Rule, registry: Registry) -> tuple[Specimen, ...]:
    """Calls that ``rule`` answers for."""
    known = [
        each
        for each in _catalogue().get(rule.name, ())
        if _same_function(rule, registry) and rule.matches(tuple(np.ndim(operand) for operand in each.operands))
    ]
    if not known and rule.name in _catalogue() and _same_function(rule, registry):
        return ()
    return tuple(known) or tuple(itertools.islice(_made_up(rule, registry), _MOST))


def _same_function(rule: Rule, registry: Registry) -> bool:
    """Whether the catalogue speaks of the function that ``rule`` is for, and not of one that has its name."""
    return not registry.is_user(rule.name) or (rule.target or "").startswith(("numpy.", "scipy.", "yota."))


def _made_up(rule: Rule, registry: Registry) -> Iterator[Specimen]:
    """Calls made from the rule's pattern with small arrays, for which the function has a value."""
    function = registry.primitive(rule.name).function
    made = [operands(rule), operands(rule, leading=(2,))]
    # An equation of complex arrays may not be analytic, and is refused.
    real = rule.equation is not None or any(each.domain is not None and each.domain.is_real for each in rule.operands)
    if not real:
        made.append(operands(rule, complex_=True))
    for given in made:
        for keywords in _keywords(rule):
            try:
                with np.errstate(all="ignore"):
                    function(*given, **keywords)
            except (TypeError, ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError):
                continue
            yield Specimen(tuple(given), keywords)


def _keywords(rule: Rule) -> Iterator[dict[str, Any]]:
    values: list[Sequence[Any]] = []
    for parameter in rule.keywords:
        given = [parameter.default.value] if isinstance(parameter.default, Literal) else []
        others = [value for value in _VALUES.get(parameter.name, ()) if value not in given]
        values.append(given + others or [None])
    for chosen in itertools.product(*values):
        yield dict(zip((parameter.name for parameter in rule.keywords), chosen, strict=True))


def operands(rule: Rule, leading: tuple[int, ...] = (), *, complex_: bool = False) -> list[Any]:
    """Operands that fit the pattern of a rule; ``leading`` are axes in the place of ``...``."""
    sizes: dict[str, int] = {}
    found = []
    for stream, parameter in enumerate(rule.operands):
        for number in range(2 if parameter.variadic else 1):
            value = _operand(parameter, sizes, leading, stream + number, symmetric=rule.equation is None)
            found.append(value * (1 + 0.5j) if complex_ and value.dtype.kind == "f" else value)
    return found


def _operand(
    parameter: Parameter, sizes: dict[str, int], leading: tuple[int, ...], stream: int, *, symmetric: bool
) -> Any:
    domain = parameter.domain
    assert domain is not None
    if domain.kind != "array":
        return np.array([sample(domain, number, stream) for number in range(_EXTENT)])
    names = domain.dimensions or ("...", "n")
    shape = leading if names[0] == "..." else ()
    axes = [each for each in names if each != "..."]
    shape += tuple(each if isinstance(each, int) else sizes.setdefault(each, _EXTENT + len(sizes)) for each in axes)
    count = np.arange(1, int(np.prod(shape)) + 1) + 7 * stream
    value = 0.25 + 0.5 * ((count * 0.6180339887498949) % 1.0).reshape(shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return value
    return ((value + value.swapaxes(-1, -2)) / 2 if symmetric else value) + shape[-1] * np.eye(shape[-1])
