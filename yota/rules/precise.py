"""Expressions to 50 digits, by mpmath: the measure against which partials are held."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from yota.errors import YotaError
from yota.rules.body import Static
from yota.rules.calls import bind
from yota.rules.display import show
from yota.rules.inspection import Registered
from yota.rules.model import Call, Expression, Literal, Name, Rule
from yota.rules.oracles.functions import special
from yota.rules.sampling import statics

__all__ = ["DIGITS", "NotPreciseError", "context", "derivative", "heads", "primal", "value"]

DIGITS = 50
_LARGEST = 10**1000
_LARGEST_SPECIAL = 10**4
_SMALLEST = 5e-324
_CHEAP = frozenset(
    "add subtract multiply divide negative positive square reciprocal where equal less greater absolute"
    " branch phase".split()
)
"""Functions that take numbers of any size at no cost; all others are asked for moderate ones only."""
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
    same = "exp expm1 log log1p sin cos tan sinh cosh tanh sqrt hypot sign floor ceil erf erfc erfinv gamma zeta"
    found: dict[str, Callable[..., Any]] = {name: getattr(mp, name) for name in same.split()}
    found.update(_arithmetic(mp))
    found.update(_inverses(mp))
    found.update(_choices(mp))
    found.update(_special(mp))
    return found


def _arithmetic(mp: Any) -> dict[str, Callable[..., Any]]:
    return {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: mp.mpf(1) if b == 0 else mp.power(a, b),
        "float_power": lambda a, b: mp.mpf(1) if b == 0 else mp.power(a, b),
        "negative": lambda x: -x,
        "positive": lambda x: x,
        "reciprocal": lambda x: 1 / x,
        "square": lambda x: x * x,
        "floor_divide": lambda a, b: mp.floor(a / b),
        "remainder": lambda a, b: a - b * mp.floor(a / b),
        "fmod": lambda a, b: a - b * _trunc(mp, a / b),
        "cbrt": lambda x: mp.cbrt(x) if x >= 0 else -mp.cbrt(-x),
        "exp2": lambda x: mp.power(2, x),
        "log2": lambda x: mp.log(x) / mp.log(2),
        "log10": lambda x: mp.log(x) / mp.log(10),
        "logaddexp": lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
        "logaddexp2": lambda a, b: mp.log(mp.power(2, a) + mp.power(2, b)) / mp.log(2),
        "real": mp.re,
        "imag": mp.im,
        "conjugate": mp.conj,
        "branch": lambda p, q: p if mp.re(p * q) >= 0 else -p,
        "phase": lambda x, y: mp.mpf(0) if y == 0 else x / y,
        "astype": mp.mpf,
    }


def _inverses(mp: Any) -> dict[str, Callable[..., Any]]:
    short = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"}
    short.update({"arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"})
    found: dict[str, Callable[..., Any]] = {name: getattr(mp, other) for name, other in short.items()}
    for name in ("deg2rad", "radians"):
        found[name] = lambda x: x * mp.pi / 180
    for name in ("rad2deg", "degrees"):
        found[name] = lambda x: x * 180 / mp.pi
    return found


def _trunc(mp: Any, x: Any) -> Any:
    return mp.ceil(x) if x < 0 else mp.floor(x)


def _choices(mp: Any) -> dict[str, Callable[..., Any]]:
    return {
        "absolute": abs,
        "fabs": abs,
        "copysign": lambda a, b: abs(a) if b >= 0 else -abs(a),
        "heaviside": lambda x, h: h if x == 0 else mp.mpf(1 if x > 0 else 0),
        "trunc": lambda x: _trunc(mp, x),
        "rint": mp.nint,
        "round": mp.nint,
        "maximum": max,
        "minimum": min,
        "fmax": max,
        "fmin": min,
        "where": lambda condition, a, b: a if condition else b,
        "equal": lambda a, b: a == b,
        "not_equal": lambda a, b: a != b,
        "less": lambda a, b: a < b,
        "less_equal": lambda a, b: a <= b,
        "greater": lambda a, b: a > b,
        "greater_equal": lambda a, b: a >= b,
        "logical_and": lambda a, b: bool(a) and bool(b),
        "logical_or": lambda a, b: bool(a) or bool(b),
        "logical_xor": lambda a, b: bool(a) != bool(b),
        "logical_not": lambda a: not a,
    }


@cache
def _special(mp: Any) -> dict[str, Callable[..., Any]]:
    sinc = {"sinc": lambda x: mp.mpf(1) if x == 0 else mp.sin(mp.pi * x) / (mp.pi * x)}
    return {**special(mp), **sinc}


def value(expression: Expression, names: Mapping[str, Any], registry: Registered) -> Any:
    """``expression`` at 50 digits.

    Raises
    ------
    NotPreciseError
        If it calls a function that is known in double precision only.
    """
    mp = context()
    if isinstance(expression, Literal):
        return _number(mp, expression.value)
    if isinstance(expression, Name):
        found = names[expression.id]
        return _number(mp, found.value) if isinstance(found, Static) else found
    if isinstance(expression, Call):
        if expression.function == "item":
            number = dict(expression.keywords).get("index", expression.arguments[-1])
            assert isinstance(number, Literal)
            return value(expression.arguments[0], names, registry)[number.value]
        if expression.function == "astype":
            return value(expression.arguments[0], names, registry)
        if expression.function == "where" and len(expression.arguments) == 3:
            # The other side need not have a value.
            condition, one, other = expression.arguments
            return value(one if value(condition, names, registry) else other, names, registry)
        arguments = [value(argument, names, registry) for argument in expression.arguments]
        return _apply(expression.function, arguments, registry)
    raise NotPreciseError(f"`{show(expression)}` has no value of one element")


def _number(mp: Any, found: Any) -> Any:
    if isinstance(found, bool) or not isinstance(found, (int, float, complex)):
        return found
    # A literal pi means the number, not its rounding.
    if found == math.pi:
        return +mp.pi
    if found == -math.pi:
        return -mp.pi
    if isinstance(found, complex):
        return mp.mpc(_number(mp, found.real), _number(mp, found.imag))
    # So does 0.1 mean a tenth.
    return mp.mpf(repr(found) if isinstance(found, float) else found)


def _apply(name: str, arguments: list[Any], registry: Registered) -> Any:
    if name in heads():
        return _head(name, arguments)
    return primal(registry.rules(name)[0], registry)(*arguments)


def _head(name: str, arguments: list[Any]) -> Any:
    """A function of mpmath's, of numbers for which it takes no time to speak of."""
    if name not in _CHEAP:
        elementary = name not in _special(context()) and name not in ("gamma", "zeta", "erfinv")
        largest, largest_special, smallest = _bounds()
        largest = largest if elementary or name == "sinc" else largest_special
        for argument in arguments:
            size = argument if isinstance(argument, bool) else abs(argument)
            if size > largest or 0 < size < smallest:
                raise OverflowError(f"{name} of a number so large or so small is not computed")
    try:
        return _kept(name, context().prec, *arguments) if name in _special(context()) else heads()[name](*arguments)
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
    """The function that ``rule`` describes, to 50 digits; of several results the one called ``result``.

    Raises
    ------
    NotPreciseError
        If it is known in double precision only.
    """
    result = result or rule.results[0]
    if result in rule.primal:
        body, fixed, parameters = rule.primal[result], statics(rule), [each.name for each in rule.operands]

        def function(*operands: Any) -> Any:
            handles: Sequence[Any] = operands
            if len(operands) != len(parameters):
                handles, _ = bind(rule, list(operands), {name: each.value for name, each in fixed.items()})
            return value(body, {**fixed, **dict(zip(parameters, handles, strict=True))}, registry)

        return function
    if rule.name not in heads() or rule.target is None or not rule.target.startswith(("numpy.", "scipy.")):
        raise NotPreciseError(f"{rule.name} is known in double precision only")
    if len(rule.results) == 1:
        return lambda *operands: _head(rule.name, list(operands))
    number = rule.results.index(result)
    return lambda *operands: _head(rule.name, list(operands))[number]


def derivative(function: Callable[..., Any], arguments: list[Any], position: int) -> Any:
    """Derivative of ``function`` by the argument at ``position``, to about 40 digits."""
    mp = context()

    def along(x: Any) -> Any:
        return function(*arguments[:position], x, *arguments[position + 1 :])

    return mp.diff(along, arguments[position])
