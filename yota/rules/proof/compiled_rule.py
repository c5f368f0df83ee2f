"""One primitive differentiated and compiled as a user's function is: its gradient, and the gradient of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.rules.language.model import Rule, refusal
from yota.rules.laws import trials
from yota.rules.registry import Registry
from yota.run.derivatives.inside import record
from yota.run.specialise import Target, compile_tape, simplified
from yota.tracing.current import current
from yota.tracing.intercept import recorded
from yota.tracing.replay import inline
from yota.transform.reverse.backward import Adjoints, gradient_tape

LONG = 64
"""Arrays of so many elements are computed as arrays; shorter ones may fall apart into numbers."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Generated code of a loss with its gradient.

    wanted: positions of the operands differentiated by.
    """

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
