"""One primitive at operands from the catalogue or made up, differentiated and compiled as a function is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.rules.language.model import Literal, Parameter, Rule, refusal
from yota.rules.laws import trials
from yota.rules.laws.sampling import sample
from yota.rules.registry import Registry
from yota.run.derivatives.inside import record
from yota.run.specialise import Target, compile_tape, simplified
from yota.tracing.current import current
from yota.tracing.intercept import recorded
from yota.tracing.replay import inline
from yota.transform.reverse.backward import Adjoints, gradient_tape

LONG = 64
"""Arrays of so many elements are computed as arrays; shorter ones may fall apart into numbers."""
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
        several = np.array([sample(domain, number, stream) for number in range(_EXTENT)])
        if symmetric:
            return several
        # Of an equation between arrays these are positions in arrays, and numbers for all elements.
        return several % _EXTENT if domain.kind == "integer" else several[0]
    names = domain.dimensions or ("...", "n")
    shape = leading if names[0] == "..." else ()
    axes = [each for each in names if each != "..."]
    shape += tuple(each if isinstance(each, int) else sizes.setdefault(each, _EXTENT + len(sizes)) for each in axes)
    count = np.arange(1, int(np.prod(shape)) + 1) + 7 * stream
    value = 0.25 + 0.5 * ((count * 0.6180339887498949) % 1.0).reshape(shape)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        return value
    return ((value + value.swapaxes(-1, -2)) / 2 if symmetric else value) + shape[-1] * np.eye(shape[-1])


@dataclass(frozen=True, slots=True)
class Compiled:
    """Generated code of a loss with its gradient."""

    wanted: tuple[int, ...]
    source: str
    adjoints: Adjoints
    call: Callable[..., Any]

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The gradient by each wanted operand; None where it is exactly zero."""
        with np.errstate(all="ignore"):
            outputs = self.call(*arguments)
        given = iter(outputs[1:] if isinstance(outputs, tuple) else ())
        return tuple(None if variable is None else next(given) for variable in self.adjoints.variables)


def differentiable(rule: Rule, operands: Sequence[Any], result: int = 0) -> tuple[int, ...]:
    """Positions of the operands by which a result has a derivative that the rule does not refuse."""
    found = []
    for position, operand in enumerate(operands):
        parameter = rule.operands[min(position, len(rule.operands) - 1)]
        written = rule.partials.get((rule.results[result], parameter.name)) or rule.adjoints.get(parameter.name)
        if parameter.moves and refusal(written) is None and np.asarray(operand).dtype.kind in "fc":
            found.append(position)
    return tuple(found)


def results(rule: Rule, operands: Sequence[Any], keywords: Mapping[str, Any], registry: Registry) -> tuple[Any, ...]:
    """What the primitive gives, as arrays."""
    return tuple(map(np.asarray, trials.results(rule, operands, keywords, registry)))


def gradient(
    rule: Rule, operands: Sequence[Any], keywords: Mapping[str, Any], weights: Any, registry: Registry, result: int = 0
) -> Compiled:
    """The gradient of ``sum(real(conj(weights) * primitive(*operands)))``, which takes the operands and the weights.

    Of several results the one numbered ``result`` counts.
    """
    known = recorded(registry.primitive(rule.name))

    def loss(*arguments: Any) -> Any:
        *inner, seed = arguments
        found = known(*inner, **keywords)
        return np.sum(np.real(np.conjugate(seed) * (found[result] if len(rule.results) > 1 else found)))

    wanted = differentiable(rule, operands, result)
    tape = _recorded(loss, (*operands, weights), rule, registry)
    return _compiled(tape, wanted, registry)


def second(
    first: Compiled, arguments: Sequence[Any], directions: Sequence[Any], rule: Rule, registry: Registry
) -> Compiled:
    """The gradient of the derivative of the loss along ``directions``; takes the arguments of ``first`` and them."""
    tape = first.adjoints.tape

    def loss(*given: Any) -> Any:
        inner, moves = given[: len(arguments)], given[len(arguments) :]
        trace = current()
        assert trace is not None
        variables = [entry.variable for entry in tape.inputs]
        slopes = inline(tape, trace, dict(zip(variables, inner, strict=True)))[1:]
        terms = [np.sum(np.real(np.conjugate(move) * slope)) for move, slope in zip(moves, slopes, strict=True)]
        return sum(terms[1:], terms[0])

    return _compiled(_recorded(loss, (*arguments, *directions), rule, registry), first.wanted, registry)


def _recorded(loss: Callable[..., Any], arguments: Sequence[Any], rule: Rule, registry: Registry) -> Tape:
    names = [parameter.name for parameter in rule.operands]
    names = [names[position] if position < len(names) else f"v{position}" for position in range(len(arguments))]
    leaves = [Leaf(value, place, name) for place, (value, name) in enumerate(zip(arguments, names, strict=True))]
    loss.__name__ = rule.name
    with np.errstate(all="ignore"):
        return record(loss, leaves, tuple, registry=registry).tape


def _compiled(tape: Tape, wanted: tuple[int, ...], registry: Registry) -> Compiled:
    adjoints = gradient_tape(tape, [tape.inputs[position].variable for position in wanted], registry)
    call, source = compile_tape(simplified(adjoints.tape, Target()), Target())
    return Compiled(wanted, source, adjoints, call)
