"""Arguments of a call in a rule body, bound to the signature of the primitive that is called."""

from __future__ import annotations

from typing import Any

from yota.errors import RuleError
from yota.rules.model import Literal, Parameter, Rule

__all__ = ["bind"]


def bind(rule: Rule, arguments: list[Any], keywords: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Operands and static keywords of a call of the primitive that ``rule`` describes.

    Positional arguments beyond the operands are its keywords in their order; keywords that are left out take their
    defaults.

    Raises
    ------
    RuleError
        If the call does not fit the signature.
    """
    fixed = [parameter for parameter in rule.operands if not parameter.variadic]
    variadic = len(fixed) < len(rule.operands)
    if len(arguments) < len(fixed):
        raise RuleError(f"{rule.name} takes {len(fixed)} operands, found {len(arguments)}")
    operands, rest = (arguments, []) if variadic else (arguments[: len(fixed)], arguments[len(fixed) :])
    if len(rest) > len(rule.keywords):
        raise RuleError(f"{rule.name} takes at most {len(rule.parameters)} arguments, found {len(arguments)}")
    static = dict(zip((parameter.name for parameter in rule.keywords), rest, strict=False))
    for name, value in keywords.items():
        if name in static:
            raise RuleError(f"{rule.name} is given `{name}` twice")
        if not any(parameter.name == name for parameter in rule.keywords):
            raise RuleError(f"{rule.name} has no keyword `{name}`")
        static[name] = value
    for parameter in rule.keywords:
        if parameter.name not in static:
            static[parameter.name] = _default(rule, parameter)
    return operands, static


def _default(rule: Rule, parameter: Parameter) -> Any:
    if not isinstance(parameter.default, Literal):
        raise RuleError(f"{rule.name} needs the keyword `{parameter.name}`")
    return parameter.default.value
