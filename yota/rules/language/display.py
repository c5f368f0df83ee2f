"""Expressions, parameters and whole rules as text of the rule language."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from yota.ir.operators import BINARY, COMPARISONS
from yota.rules.language.model import Adjoint, Call, Domain, Expression, Item, Literal, Name, Parameter, Rule, Spread

_LEVELS = {**dict.fromkeys(COMPARISONS, 1), "add": 2, "subtract": 2, "power": 5}
"""How tightly operators bind; the others are products."""
_NEGATIVE = 4
_ATOM = 6


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything inside it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.inside:
            yield from walk(argument)


def show(expression: Expression) -> str:
    """Text of ``expression``.

    >>> show(Call("multiply", (Name("x"), Call("add", (Name("y"), Literal(1))))))
    'x * (y + 1)'
    """
    return _show(expression)[0]


def _show(expression: Expression) -> tuple[str, int]:
    if isinstance(expression, Literal):
        text = _literal(expression.value)
        return text, _NEGATIVE if text.startswith("-") else _ATOM
    if isinstance(expression, Name):
        return expression.id, _ATOM
    if isinstance(expression, Adjoint):
        return f"d[{expression.of}]", _ATOM
    if isinstance(expression, Item):
        return f"{expression.name}[{expression.index}]", _ATOM
    if isinstance(expression, Spread):
        return f"*{expression.name}", _ATOM
    return _call(expression)


def _call(call: Call) -> tuple[str, int]:
    if call.function in BINARY and len(call.arguments) == 2 and not call.keywords:
        sign, level = BINARY[call.function].sign, _LEVELS.get(call.function, 3)
        # Only the power binds to the right; comparisons do not chain at all.
        left = _within(call.arguments[0], level + (call.function == "power" or level == 1))
        right = _within(call.arguments[1], _NEGATIVE if call.function == "power" else level + 1)
        return f"{left} {sign} {right}" if level < 5 else f"{left}**{right}", level
    if call.function == "negative" and len(call.arguments) == 1:
        return f"-{_within(call.arguments[0], _NEGATIVE)}", _NEGATIVE
    arguments = [show(argument) for argument in call.arguments]
    arguments += [f"{name}={show(argument)}" for name, argument in call.keywords]
    if call.function == "tuple":
        return f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})", _ATOM
    return f"{call.function}({', '.join(arguments)})", _ATOM


def _within(expression: Expression, level: int) -> str:
    text, own = _show(expression)
    return text if own >= level else f"({text})"


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        for name, number in (("oo", math.inf), ("-oo", -math.inf), ("pi", math.pi), ("E", math.e)):
            if value == number:
                return name
    return repr(value)


def _domain(domain: Domain) -> str:
    name = f"{'Real' if domain.is_real else ''}{domain.kind.capitalize()}"
    if domain.dimensions is not None:
        return f"{name}[{', '.join(map(str, domain.dimensions))}]"
    if (domain.low, domain.high) == (-math.inf, math.inf):
        return name
    return f"{name}({_literal(domain.low)}, {_literal(domain.high)})"


def _parameter(parameter: Parameter) -> str:
    kind = "Static" if parameter.domain is None else _domain(parameter.domain)
    default = "" if parameter.default is None else f" = {show(parameter.default)}"
    return f"{'*' if parameter.variadic else ''}{parameter.name}: {kind}{default}"


def signature(rule: Rule) -> str:
    """The line that begins with ``def``, without its end.

    >>> signature(Rule("elementwise", "exp", None, (Parameter("x", Domain("real", 0.0)),), ("y",)))
    'def exp(x: Real(0.0, oo)) -> y:'
    """
    parts = [_parameter(parameter) for parameter in rule.operands]
    keywords = [_parameter(parameter) for parameter in rule.keywords]
    if keywords and not any(parameter.variadic for parameter in rule.operands):
        parts.append("*")
    results = rule.results[0] if len(rule.results) == 1 else f"({', '.join(rule.results)})"
    return f"def {rule.name}({', '.join(parts + keywords)}) -> {results}:"


def template(
    name: str,
    target: str,
    operands: int | Sequence[str],
    elementwise: bool,
    count: int = 1,
    keywords: Sequence[str] = (),
) -> str:
    """A rule to paste and fill in, for a function of ``count`` results; operands are named or counted.

    >>> print(template("f", "m.f", 1, True))
    @elementwise("m.f")
    def f(x: Real) -> y:
        d[y, x] = ...  # the partial of one element
    """
    names = list(operands) if not isinstance(operands, int) else [f"x{position}" for position in range(operands)]
    names = ["x"] if operands == 1 else names
    kind, domain = ("elementwise", "Real") if elementwise else ("tensor", "Array")
    parts = [*(f"{each}: {domain}" for each in names), *(["*", *keywords] if keywords else [])]
    parameters = ", ".join(parts)
    result = "y" if "y" not in names and not any(each.startswith("y:") for each in keywords) else "result"
    results = [result] if count == 1 else [f"{result}{position}" for position in range(count)]
    left = [f"d[{y}, {each}]" for each in names for y in results] if elementwise else [f"d[{each}]" for each in names]
    adjoint = f"the adjoint, linear in {' and '.join(f'd[{y}]' for y in results)}"
    what = "the partial of one element" if elementwise else adjoint
    shown = results[0] if count == 1 else f"({', '.join(results)})"
    lines = [f'@{kind}("{target}")', f"def {name}({parameters}) -> {shown}:"]
    return "\n".join([*lines, *(f"    {each} = ...  # {what}" for each in left)])
