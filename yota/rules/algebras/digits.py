"""The algebra of 50 digits, by mpmath: the measure against which partials are held."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from yota.errors import YotaError
from yota.ir.primitive import BINARY, COMPARISONS
from yota.rules.algebras.emitted import Static
from yota.rules.algebras.evaluate import Algebra, formulas
from yota.rules.language.model import Call, Expression, Literal, Name, Rule
from yota.rules.language.rule_text import show
from yota.rules.language.statics import bind
from yota.rules.laws.inspection import Registered
from yota.rules.laws.sampling import defaults, statics
from yota.rules.oracles.special_functions import special

DIGITS = 50
FAULTS = (ArithmeticError, ValueError, TypeError, AttributeError, NotImplementedError)
"""What mpmath raises where it has no value."""
_LARGEST = 10**1000
_LARGEST_SPECIAL = 10**4
_SMALLEST = 5e-324
_CHEAP = frozenset(
    "add subtract multiply divide negative positive square reciprocal where equal less greater absolute"
    " branch phase".split()
)
"""Functions that take numbers of any size at no cost; all others are asked for moderate ones only."""
_FORMULAS = frozenset(
    "expit log_expit logit erfi erfcx dawsn ndtr gammaln loggamma rgamma psi xlogy xlog1py entr rel_entr kl_div"
    " pseudo_huber exp10 exprel cosm1 sindg cosdg tandg cotdg".split()
)
"""Special functions among the formulas that mpmath and sympy share."""
LOCK = threading.RLock()
"""mpmath's working precision belongs to its context; one thread uses it at a time."""


class NotPreciseError(YotaError):
    """A function is known in double precision only."""


@cache
def context() -> Any:
    """The context of this module, apart from the one that others set the precision of."""
    import mpmath

    made = mpmath.MPContext()
    made.dps = DIGITS
    return made


@cache
def heads() -> dict[str, Callable[..., Any]]:
    """Elementwise functions to 50 digits, by the names of their primitives."""
    mp = context()

    def power(a: Any, b: Any) -> Any:
        return mp.one if b == 0 else mp.power(a, b)

    def trunc(x: Any) -> Any:
        return mp.ceil(x) if x < 0 else mp.floor(x)

    return {
        **formulas(mp),
        **{name: BINARY[name].function for name in COMPARISONS},
        **dict.fromkeys(("maximum", "fmax"), max),
        **dict.fromkeys(("minimum", "fmin"), min),
        **dict.fromkeys(("rint", "round"), mp.nint),
        **dict.fromkeys(("power", "float_power"), power),
        **{name: getattr(mp, name) for name in ("floor", "ceil", "zeta")},
        "floor_divide": lambda a, b: mp.floor(a / b),
        "remainder": lambda a, b: a - b * mp.floor(a / b),
        "isinf": mp.isinf,
        "fmod": lambda a, b: a - b * trunc(a / b),
        "trunc": trunc,
        "cbrt": lambda x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x),
        "real": mp.re,
        "imag": mp.im,
        "conjugate": mp.conj,
        "branch": lambda p, q: p if mp.re(p * q) >= 0 else -p,
        "phase": lambda x, y: mp.zero if y == 0 else x / y,
        "astype": mp.mpf,
        "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
        "heaviside": lambda x, h: h if x == 0 else mp.mpf(1 if x > 0 else 0),
        "where": lambda condition, a, b: a if condition else b,
        "logical_and": lambda a, b: bool(a) and bool(b),
        "logical_or": lambda a, b: bool(a) or bool(b),
        "logical_xor": lambda a, b: bool(a) != bool(b),
        "logical_not": lambda a: not a,
        **_special(),
    }


@cache
def _special() -> dict[str, Callable[..., Any]]:
    return special(context())


class Digits(Algebra):
    """Numbers of mpmath's; a function that is known in double precision only raises NotPreciseError."""

    def __init__(self, registry: Registered) -> None:
        self.registry = registry

    def literal(self, value: Any) -> Any:
        """A number of mpmath's."""
        mp = context()
        if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
            return value
        if isinstance(value, complex):
            return mp.mpc(self.literal(value.real), self.literal(value.imag))
        # A literal pi means the number, not its rounding; so does 0.1 mean a tenth.
        if abs(value) == math.pi:
            return +mp.pi if value > 0 else -mp.pi
        return mp.mpf(repr(value) if isinstance(value, float) else value)

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        """What a name stands for."""
        if not isinstance(expression, Name):
            raise NotPreciseError(f"`{show(expression)}` has no value of one element")
        found = names[expression.id]
        return self.literal(found.value) if isinstance(found, Static) else found

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        """A function of mpmath's, or what the primal of a rule says."""
        if call.function == "item":
            number = dict(call.keywords).get("index", call.arguments[-1])
            assert isinstance(number, Literal)
            return self.of(call.arguments[0], names)[number.value]
        if call.function == "astype":
            return self.of(call.arguments[0], names)
        if call.function == "where" and len(call.arguments) == 3:
            # The other side need not have a value.
            condition, one, other = call.arguments
            return self.of(one if self.of(condition, names) else other, names)
        arguments = self.arguments(call, names)
        if call.function in heads():
            return _head(call.function, arguments)
        return primal(self.registry.rules(call.function)[0], self.registry)(*arguments)


def _head(name: str, arguments: list[Any]) -> Any:
    """A function of mpmath's, of numbers for which it takes no time to speak of."""
    is_special = name in _FORMULAS or name in _special()
    if name not in _CHEAP:
        largest, largest_special, smallest = _bounds()
        largest = largest_special if is_special or name in ("gamma", "zeta", "erfinv") else largest
        for argument in arguments:
            size = argument if isinstance(argument, bool) else abs(argument)
            if size > largest or 0 < size < smallest:
                raise OverflowError(f"{name} of a number so large or so small is not computed")
    try:
        return _kept(name, context().prec, *arguments) if is_special else heads()[name](*arguments)
    except (AttributeError, NotImplementedError) as fault:
        # What mpmath says to a complex number, or to one that is none, where it knows real ones only.
        raise TypeError(f"{name} is not computed for {arguments}: {fault}") from None


@cache
def _bounds() -> tuple[Any, Any, Any]:
    """Numbers of mpmath's own are compared in less time."""
    mp = context()
    return mp.mpf(_LARGEST), mp.mpf(_LARGEST_SPECIAL), mp.mpf(_SMALLEST)


@lru_cache(maxsize=8192)
def _kept(name: str, precision: int, *arguments: Any) -> Any:
    """A special function, which takes long, and which a formula and its neighbours ask for at the same places."""
    return heads()[name](*arguments)


def primal(rule: Rule, registry: Registered, result: str | None = None) -> Callable[..., Any]:
    """The function that ``rule`` describes, to 50 digits; raises NotPreciseError if it is known in double only."""
    result = result or rule.results[0]
    if rule.equation is not None:
        return _root(rule, rule.equation, registry)
    if result in rule.primal:
        body, parameters = rule.primal[result], [each.name for each in rule.operands]

        def function(*operands: Any) -> Any:
            handles = list(operands)
            if len(operands) != len(parameters):
                handles, _ = bind(rule, handles, defaults(rule))
            return Digits(registry).of(body, {**statics(rule), **dict(zip(parameters, handles, strict=True))})

        return function
    if rule.name not in heads() or rule.target is None or not rule.target.startswith(("numpy.", "scipy.")):
        raise NotPreciseError(f"{rule.name} is known in double precision only")
    if len(rule.results) == 1:
        return lambda *operands: _head(rule.name, list(operands))
    number = rule.results.index(result)
    return lambda *operands: _head(rule.name, list(operands))[number]


def _root(rule: Rule, equation: Expression, registry: Registered) -> Callable[..., Any]:
    """The function that an equation defines: the root next to what the function gives in double precision."""
    names, mp = [each.name for each in rule.operands], context()

    def function(*operands: Any) -> Any:
        given = dict(zip(names, operands, strict=True))
        near = registry.primitive(rule.name).function(*(float(each) for each in operands))
        if not math.isfinite(near):
            raise ValueError(f"{rule.name} has no value here")

        def residual(root: Any) -> Any:
            return Digits(registry).of(equation, {**given, rule.results[0]: root})

        return mp.findroot(residual, mp.mpf(float(near)), tol=mp.mpf(10) ** (-2 * mp.dps + 10), maxsteps=60)

    return function


def numbers(point: Mapping[str, Any]) -> list[Any]:
    """The operands at a point; whole numbers stay such."""
    return [value if isinstance(value, int) else context().mpf(value) for value in point.values()]


def at(
    rule: Rule, result: str, name: str, point: Mapping[str, Any], registry: Registered
) -> tuple[Any, dict[str, Any]]:
    """The derivative of ``result`` by ``name``, and values of operands and results; call it while `LOCK` is held."""
    function, arguments = primal(rule, registry, result), numbers(point)
    names: dict[str, Any] = {**statics(rule), **dict(zip(point, arguments, strict=True))}
    names |= {each: primal(rule, registry, each)(*arguments) for each in rule.results}
    return derivative(function, arguments, list(point).index(name)), names


def derivative(function: Callable[..., Any], arguments: list[Any], position: int) -> Any:
    """Derivative of ``function`` by the argument at ``position``, to about 40 digits."""

    def along(x: Any) -> Any:
        return function(*arguments[:position], x, *arguments[position + 1 :])

    return context().diff(along, arguments[position])
