"""The one interpreter of rule expressions, and the operations that several algebras share."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from yota.errors import RuleError
from yota.ir.primitive import BINARY
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.rule_text import show

ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{name: BINARY[name].function for name in ("add", "subtract", "multiply", "divide")},
    "negative": operator.neg,
    "positive": lambda x: x,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
}
"""Functions that are Python's operators, for values of every algebra that has these."""
CONDITIONS = frozenset(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not".split()
)
"""Functions whose results are true or false."""


class Algebra(ABC):
    """What an expression is evaluated in: a value for each literal and name, an operation for each call."""

    def of(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """The value of ``expression``, in which identifiers stand for ``names``."""
        if isinstance(expression, Call):
            return self.call(expression, names)
        if isinstance(expression, Literal):
            return self.literal(expression.value)
        return self.leaf(expression, names)

    def arguments(self, call: Call, names: Mapping[str, Any]) -> list[Any]:
        """The values of the arguments of ``call`` that are not given by keyword."""
        return [self.of(argument, names) for argument in call.arguments]

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """The value of what is neither a call nor a literal."""
        if not isinstance(expression, Name):
            raise RuleError(f"`{show(expression)}` has no value of one element")
        return names[expression.id]

    @abstractmethod
    def literal(self, value: Any) -> Any:
        """The value of a literal."""

    @abstractmethod
    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        """The value of a call."""


def formulas(m: Any) -> dict[str, Callable[..., Any]]:
    """Functions by the names of primitives; ``m`` is a context of mpmath, or sympy with mpmath's names."""
    same = "exp expm1 log log1p sin cos tan sinh cosh tanh sqrt hypot sign gamma loggamma erf erfc erfi erfinv"
    found: dict[str, Callable[..., Any]] = {name: getattr(m, name) for name in same.split()}
    for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh"):
        found[f"arc{name}"] = getattr(m, f"a{name}")
    for name, plain in (("sindg", m.sin), ("cosdg", m.cos), ("tandg", m.tan), ("cotdg", m.cot)):
        found[name] = lambda x, plain=plain: plain(x * m.pi / 180)

    def xlogy(x: Any, z: Any) -> Any:
        return m.zero if x == 0 else x * m.log(z)

    return {
        **found,
        **ARITHMETIC,
        **dict.fromkeys(("deg2rad", "radians"), lambda x: x * m.pi / 180),
        **dict.fromkeys(("rad2deg", "degrees"), lambda x: x * 180 / m.pi),
        **dict.fromkeys(("absolute", "fabs"), abs),
        "arctan2": m.atan2,
        "exp2": lambda x: m.power(2, x),
        "exp10": lambda x: m.power(10, x),
        "log2": lambda x: m.log(x) / m.log(2),
        "log10": lambda x: m.log(x) / m.log(10),
        "logaddexp": lambda a, b: m.log(m.exp(a) + m.exp(b)),
        "logaddexp2": lambda a, b: m.log(m.power(2, a) + m.power(2, b)) / m.log(2),
        "expit": lambda x: 1 / (1 + m.exp(-x)),
        "exprel": lambda x: m.one if x == 0 else m.expm1(x) / x,
        "log_expit": lambda x: -m.log1p(m.exp(-x)),
        "logit": lambda x: m.log(x / (1 - x)),
        "sinc": lambda x: m.one if x == 0 else m.sin(m.pi * x) / (m.pi * x),
        "cosm1": lambda x: m.cos(x) - 1,
        "psi": m.digamma,
        "gammaln": lambda x: m.log(abs(m.gamma(x))),
        "rgamma": lambda x: 1 / m.gamma(x),
        "erfcx": lambda x: m.exp(x * x) * m.erfc(x),
        "dawsn": lambda x: m.sqrt(m.pi) / 2 * m.exp(-x * x) * m.erfi(x),
        "ndtr": lambda x: m.erfc(-x / m.sqrt(2)) / 2,
        "xlogy": xlogy,
        "xlog1py": lambda x, z: xlogy(x, 1 + z),
        "entr": lambda x: -xlogy(x, x),
        "rel_entr": lambda x, z: xlogy(x, x / z),
        "kl_div": lambda x, z: xlogy(x, x / z) - x + z,
        "pseudo_huber": lambda d, r: d**2 * (m.sqrt(1 + (r / d) ** 2) - 1),
    }
