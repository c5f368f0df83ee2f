"""Arguments of a call in a rule body, bound to the signature of the primitive that is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.errors import RuleError
from yota.rules.model import Literal, Parameter, Rule

__all__ = ["bind"]


def bind(
    rule: Rule,
    arguments: list[Any],
    keywords: dict[str, Any],
    constant: Callable[[float], Any] = lambda value: value,
) -> tuple[list[Any], dict[str, Any]]:
    """Operands and static keywords of a call of the primitive that ``rule`` describes.

    Operands may be given by name. Positional arguments beyond them are the rule's keywords in their order. What is left
    out takes its default; ``constant`` turns that of an operand into what ``arguments`` consist of.

    Raises
    ------
    RuleError
        If the call does not fit the signature.
    """
    fixed = [parameter for parameter in rule.operands if not parameter.variadic]
    variadic = len(fixed) < len(rule.operands)
    arguments, keywords = list(arguments), dict(keywords)
    for parameter in fixed[len(arguments) :]:
        if parameter.name in keywords:
            arguments.append(keywords.pop(parameter.name))
        elif isinstance(parameter.default, Literal):
            arguments.append(constant(parameter.default.value))
        else:
            break
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
