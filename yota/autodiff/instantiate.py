"""Writing the derivative part of one rule onto a tape, for one op and one of its operands."""

from __future__ import annotations

from typing import Any

from yota.errors import DifferentiationError, MissingRuleError
from yota.ir.catalog import primitive
from yota.ir.tape import Op, TapeBuilder
from yota.ir.types import TensorType
from yota.rules.body import Static, expand
from yota.rules.model import Expression, Parameter, Rule, refusal
from yota.rules.registry import Registry

__all__ = ["contribution"]


def contribution(builder: TapeBuilder, registry: Registry, op: Op, position: int, adjoint: int) -> int | None:
    """What ``op`` adds to the adjoint of its operand at ``position``; None for exactly nothing.

    For an elementwise op that is the adjoint of its result times the conjugate of the partial (the conjugate
    makes the gradient of a real loss by a complex variable its direction of steepest ascent); the shape is that
    of the result, broadcasting is not undone yet.
    """
    rule = registry.rule(op.name, tuple(builder.types[operand].ndim for operand in op.operands))
    if rule.kind == "nodiff":
        return None
    parameter = rule.operands[min(position, len(rule.operands) - 1)]
    _refuse_kind(rule, parameter, builder.types[op.operands[position]])
    names = _names(rule, op, position)
    if rule.kind == "elementwise":
        partial = registry.partial(rule, parameter.name)
        _refuse(rule, parameter, partial)
        return _times(builder, adjoint, _handle(builder, expand(partial, names, builder, registry)))
    body = rule.adjoints.get(parameter.name)
    if body is None:
        raise MissingRuleError(
            f"{rule.file}:{rule.line}: the rule of {rule.name} has no adjoint for {parameter.name}; add the line\n"
            f"    d[{parameter.name}] = ..."
        )
    _refuse(rule, parameter, body)
    if _is_zero(body):
        return None
    return _handle(builder, expand(body, {**names, "d": adjoint}, builder, registry))


def _refuse(rule: Rule, parameter: Parameter, body: Expression) -> None:
    """Raise what the rule says in the place of a derivative."""
    reason = refusal(body)
    if reason is not None:
        raise DifferentiationError(
            f"{rule.target or rule.name} has no derivative by {parameter.name}: {reason} ({rule.file}:{rule.line}). "
            f"Keep {parameter.name} constant: leave it out of wrt, or do not compute it from an argument."
        )


def _refuse_kind(rule: Rule, parameter: Parameter, type_: TensorType) -> None:
    """Raise if no derivative by an operand of this type is meant by the rule."""
    kind = parameter.domain.kind if parameter.domain else ""
    if kind == "real" and type_.is_complex:
        raise DifferentiationError(
            f"{rule.name} has no derivative by a complex {parameter.name}: its rule ({rule.file}:{rule.line}) is for "
            "real arguments. Take .real, .imag or abs() first, or give it a rule with `Complex`."
        )
    if kind == "integer" and rule.kind == "elementwise":
        raise DifferentiationError(
            f"{rule.target or rule.name} has no derivative by {parameter.name}, which ranges over integers "
            f"({rule.file}:{rule.line}). Pass an int, or keep {parameter.name} constant."
        )


def _is_zero(body: Expression) -> bool:
    return getattr(body, "value", None) == 0


def _names(rule: Rule, op: Op, position: int) -> dict[str, Any]:
    names: dict[str, Any] = {}
    operands = iter(op.operands)
    for parameter in rule.operands:
        names[parameter.name] = tuple(operands) if parameter.variadic else next(operands)
    names[rule.results[0]] = op.result
    for name, value in op.static:
        names[name] = Static(value)
    if rule.loop is not None:
        names[rule.loop] = Static(position - (len(rule.operands) - 1))
    return names


def _handle(builder: TapeBuilder, value: Any) -> int:
    return builder.constant(value.value) if isinstance(value, Static) else int(value)


def _times(builder: TapeBuilder, adjoint: int, partial: int) -> int | None:
    value = builder.constants.get(partial)
    if isinstance(value, (bool, int, float)):
        if value == 0:
            return None
        if value == 1:
            return adjoint
        if value == -1:
            return builder.emit(primitive("negative"), (adjoint,))
    if builder.types[partial].is_complex:
        partial = builder.emit(primitive("conjugate"), (partial,))
    return builder.emit(primitive("multiply"), (adjoint, partial))
