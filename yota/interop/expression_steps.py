"""Steps of programs, from functions of sympy by their names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partialmethod
from typing import Any

from yota.emit.render import template_text
from yota.rules.algebras.sympy_functions import functions
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.rule_text import walk
from yota.rules.language.syntax import read_expression
from yota.rules.registry import registry

FORMS: Mapping[str, str] = dict(line.split(" = ", 1) for line in template_text("sympy/functions.txt").splitlines())
"""Sympy functions and conditions of arguments a, b, c and d in the rule language, in addition to `functions`."""
ORDERED = frozenset(
    "expint jn yn legendre chebyshevt chebyshevu hermite hermite_prob laguerre assoc_laguerre gegenbauer jacobi".split()
)
"""Functions whose first argument is an integer."""
CHAINS = {
    "Max": "maximum",
    "Min": "minimum",
    "maximum": "maximum",
    "minimum": "minimum",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
} | {"MatAdd": "add", "HadamardProduct": "multiply", "KroneckerProduct": "kron"}
MOST_POWER = 64


@cache
def form(name: str) -> Expression | None:
    """The form of a sympy function in the rule language, unless it is a primitive of another name."""
    text = FORMS.get(name)
    return None if text is None else read_expression(text, frozenset("abcd"))


@cache
def primitives_by_name() -> Mapping[str, str]:
    """Names of primitives by equivalent sympy functions."""
    found = functions().items()
    return {made.__name__: name for name, made in found if isinstance(made, type) and registry().knows(name)}


class Steps:
    """Steps of a program; equal steps are shared."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Call]] = []
        self.constants: Mapping[Any, Literal] = {}
        self._calls: dict[Any, Name] = {}
        self._depth = 0

    def call(self, function: str, *arguments: Expression, **keywords: Any) -> Name:
        """A new step, or an existing equal one."""
        call = Call(function, arguments, tuple((name, Literal(each)) for name, each in keywords.items()))
        if call not in self._calls:
            name = f"{len(self.steps)}"
            self.steps.append((name, call))
            self._calls[call] = Name(name)
        return self._calls[call]

    def folded(self, function: str, parts: Iterable[Expression]) -> Expression:
        """A chain of calls from the left."""
        first, *rest = parts
        for each in rest:
            first = self.call(function, first, each)
        return first

    def named(self, name: str, parts: Sequence[Expression], *, whole: bool = False) -> Expression | None:
        """A sympy function by its name and number of arguments, or None; if ``whole``, the first is an integer."""
        special = getattr(self, f"_{name}", None) if name in BY_HAND else None
        if special is not None:
            return special(*parts) if len(parts) in BY_HAND[name] else None
        if name in CHAINS:
            return self.folded(CHAINS[name], parts) if parts else None
        known = form(name)
        if known is None:
            alike = primitives_by_name().get(name)
            wanted = len(registry().rules(alike)[0].operands) if alike else -1
            return self.call(alike, *parts) if alike and len(parts) == wanted else None
        count = len({each.id for each in walk(known) if isinstance(each, Name)})
        whole = whole or bool(parts and isinstance(parts[0], Literal) and isinstance(parts[0].value, int))
        if count != len(parts) or (name in ORDERED and not whole):
            return None
        return self._written(known, dict(zip("abcd", parts, strict=False)))

    def _written(self, form: Expression, names: Mapping[str, Expression]) -> Expression:
        if isinstance(form, Name):
            return names[form.id]
        if not isinstance(form, Call):
            return form
        keywords = {name: each.value for name, each in form.keywords}  # type: ignore[union-attr]
        return self.call(form.function, *(self._written(each, names) for each in form.arguments), **keywords)

    def index(self, low: Expression, high: Expression) -> Name:
        """All values of an index; steps until `over` are inside its sum."""
        self._depth += 1
        return self.call("index", low, high, depth=self._depth - 1)

    def over(self, body: Expression, index: Name, function: str) -> Name:
        """The sum or product of a body over the last index."""
        self._depth -= 1
        return self.call("over", body, index, by=function)

    # -- functions that no form says ---------------------------------------------------------------------

    def _sqrt(self, x: Expression) -> Expression:
        return self.call("sqrt", x)

    def _Rational(self, above: Expression, below: Expression) -> Expression:  # noqa: N802
        return self.call("divide", above, below)

    def _polygamma(self, order: Expression, x: Expression) -> Expression | None:
        value = order.value if isinstance(order, Literal) else None
        if not isinstance(value, int) or not 0 <= value <= MOST_POWER:
            return None
        if value == 0:
            return self.call("psi", x)
        factor = Literal(float((-1) ** (value + 1) * math.factorial(value)))
        return self.call("multiply", factor, self.call("zeta", Literal(value + 1), x))

    def _zeta(self, s: Expression, x: Expression | None = None) -> Expression:
        return self.call("riemann", s) if x is None else self.call("zeta", s, x)

    def _elliptic_e(self, *parts: Expression) -> Expression:
        return self.call("ellipe" if len(parts) == 1 else "ellipeinc", *parts)

    def _bessel(self, letter: str, order: Expression, x: Expression) -> Expression:
        whole = order.value if isinstance(order, Literal) else None
        # The functions of order 0 and 1 are faster, and defined on both sides of 0.
        return self.call(f"{letter}{whole}", x) if whole in (0, 1) else self.call(f"{letter}v", order, x)

    _besselj, _bessely = partialmethod(_bessel, "j"), partialmethod(_bessel, "y")
    _besseli, _besselk = partialmethod(_bessel, "i"), partialmethod(_bessel, "k")

    def _log(self, *parts: Expression) -> Expression:
        return self.folded("divide", [self.call("log", each) for each in parts])


BY_HAND = {
    "sqrt": (1,),
    "Rational": (2,),
    "polygamma": (2,),
    "zeta": (1, 2),
    "elliptic_e": (1, 2),
    "log": (1, 2),
    **dict.fromkeys(("besselj", "bessely", "besseli", "besselk"), (2,)),
}
