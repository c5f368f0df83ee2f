"""Python's modules math, cmath and statistics: recorded as functions of NumPy and SciPy, or refused."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any

from yota.tracing.creation import array
from yota.tracing.forms import Trace, is_tracer, np, records

_NAMES = (
    "sin cos tan sinh cosh tanh exp expm1 exp2 log2 log10 log1p sqrt cbrt fabs degrees radians copysign fmod "
    "isnan isinf isfinite"
).split()
_RENAMED = {f"a{name}": f"arc{name}" for name in "sin cos tan tan2 sinh cosh tanh".split()} | {"pow": "power"}
_OF_SCIPY = {"gamma": "gamma", "lgamma": "gammaln", "erf": "erf", "erfc": "erfc"}


def _log(trace: Trace, value: Any, base: Any = None) -> Any:
    log = _same("log", "log")
    return log(trace, value) if base is None else log(trace, value) / log(trace, base)


def _remainder(trace: Trace, x: Any, y: Any) -> Any:
    """What is left of ``x`` beside the nearest multiple of ``y``, the even one of two: every step is exact."""
    left = np.fmod(x, y)
    twice, whole = 2.0 * np.abs(left), np.abs(y)
    is_odd = np.fmod(np.trunc(x / y), 2.0) != 0.0
    beyond = np.logical_or(twice > whole, np.logical_and(twice == whole, is_odd))
    return np.where(beyond, left - np.copysign(whole, left), left)


def _fsum(trace: Trace, values: Any) -> Any:
    """A compensated sum (Ogita, Rump and Oishi 2005, algorithm 4.4); rounding errors have no part in the derivative."""
    rest = map(_double, values)
    total, lost = next(rest, 0.0), 0.0
    for value in rest:
        last, total = total, total + value
        part = total - last
        lost = lost + ((last - (total - part)) + (value - part))
    return total + trace.still(np.where(np.isfinite(lost), lost, 0.0))


def _frexp(trace: Trace, x: Any) -> tuple[Any, int]:
    """Fraction and exponent, which is a guard."""
    exponent = math.frexp(trace.traced(x)._value())[1]
    fraction = np.ldexp(x, -exponent)
    size = np.abs(fraction)
    if not bool(np.logical_and(size >= 0.5, size < 1.0)):
        bool(np.equal(fraction, 0.0))  # or else NaN or infinite
    return fraction, exponent


def _isclose(trace: Trace, a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> bool:
    # One decision: it goes the same way wherever the answer is the same.
    bound = np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
    return bool(np.logical_or(np.equal(a, b), np.abs(a - b) <= bound))


def _of_scipy(name: str, trace: Trace, value: Any) -> Any:
    try:
        # The rules are those of SciPy's functions, which is loaded only where they are called for.
        special = importlib.import_module("scipy.special")
    except ImportError:
        raise trace.refuse(
            f"math.{name} of a traced value takes its derivative from scipy.special.{_OF_SCIPY[name]}.",
            "Install SciPy: pip install scipy.",
        ) from None
    found = getattr(special, _OF_SCIPY[name])(value)
    if is_tracer(found) and not found.ndim:
        _guarded(lambda: getattr(math, name)(value._value()), lambda: found)
        trace.stays_finite(found)
    return found


def _guarded(compute: Callable[[], Any], found: Callable[[], Any]) -> Any:
    """What ``compute`` gives: where it raises, ``found`` gives no finite number."""
    try:
        return compute()
    except (ValueError, OverflowError):
        # Code that catches this goes on: what it records holds for numbers that raise it too, and no others.
        bool(np.isfinite(found()))
        raise


def _nextafter(trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.refuse(
        "math.nextafter of a traced value cannot be recorded.",
        "Do it outside of the function; a step to the neighbouring number has no derivative of use.",
    )


def _same(name: str, target: str) -> Callable[..., Any]:
    """The form of a function that is one of NumPy's; like all of math's it gives a Python number."""
    original, ufunc = getattr(math, name, None), getattr(np, target)

    def form(trace: Trace, *args: Any) -> Any:
        known = trace.registry.find(ufunc)
        if known is None or any(np.ndim(value) for value in args):
            return ufunc(*args)
        given = tuple(map(_double, args))
        return _guarded(lambda: trace.apply(known, given, python=original), lambda: ufunc(*args))

    return form


def _double(value: Any) -> Any:
    """A number in the precision that math computes in."""
    narrow = is_tracer(value) and value.dtype.kind == "f" and value.itemsize < 8
    return value.astype(float) if narrow else value


def _number(value: Any) -> Any:
    """A result as Python's number."""
    if isinstance(value, tuple):
        return tuple(map(_number, value))
    is_scalar = is_tracer(value) and value.dtype.kind == "f" and isinstance(value._value(), np.generic)
    return _double(value).item() if is_scalar else value


_FORMS: dict[str, Callable[..., Any]] = {
    **{name: _same(name, target) for name, target in (*zip(_NAMES, _NAMES, strict=True), *_RENAMED.items())},
    **{name: functools.partial(_of_scipy, name) for name in _OF_SCIPY},
    "nextafter": _nextafter,
    "log": _log,
    "hypot": lambda trace, *values: functools.reduce(np.hypot, values) if len(values) > 1 else np.abs(*values),
    "remainder": _remainder,
    "fsum": _fsum,
    "dist": lambda trace, p, q: np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True))),
    "modf": lambda trace, value: (np.fmod(value, 1.0), np.trunc(value)),
    "ldexp": lambda trace, value, exponent: value * 2.0 ** int(exponent),
    "frexp": _frexp,
    "isclose": _isclose,
    "prod": lambda trace, values, start=1: functools.reduce(lambda a, b: a * b, values, start),
    "sumprod": lambda trace, p, q: sum(a * b for a, b in zip(p, q, strict=True)),
    "fma": lambda trace, x, y, z: x * y + z,
}


for _name, _form in _FORMS.items():
    records("math", _name)(lambda trace, *args, form=_form, **keywords: _number(form(trace, *args, **keywords)))


def _complex(value: Any) -> Any:
    """A complex number, from which NumPy's functions take complex results as those of cmath do."""
    if not is_tracer(value):
        return complex(value)
    return value if value.dtype.kind == "c" else value.astype(complex)


@records("cmath", *"exp sqrt sin cos tan sinh cosh tanh isnan isinf isfinite".split(), named=True)
@records("cmath", *"asin acos atan asinh acosh atanh".split(), named=True)
def _of_complex(name: str, trace: Trace, value: Any) -> Any:
    return getattr(np, _RENAMED.get(name, name))(_complex(value))


@records("cmath", "log")
def _complex_log(trace: Trace, value: Any, base: Any = None) -> Any:
    found = np.log(_complex(value))
    return found if base is None else found / np.log(_complex(base))


@records("cmath", "phase")
def _phase(trace: Trace, value: Any) -> Any:
    value = _complex(value)
    return np.arctan2(np.imag(value), np.real(value))


records("cmath", "log10")(lambda trace, value: _complex_log(trace, value, 10.0))
records("cmath", "polar")(lambda trace, value: (np.abs(_complex(value)), _phase(trace, value)))
records("cmath", "rect")(lambda trace, r, phi: r * np.cos(phi) + r * np.sin(phi) * 1j)
records("cmath", "isclose")(_isclose)


@records("statistics", "variance", "pvariance", "stdev", "pstdev", named=True)
def _spread(name: str, trace: Trace, data: Any, *given: Any, **by_name: Any) -> Any:
    values = array(trace, data)
    centre = next(iter((*given, *by_name.values())), None)
    deviation = values - (np.mean(values) if centre is None else centre)
    variance = np.sum(deviation * deviation) / (values.size - (not name.startswith("p")))
    return np.sqrt(variance) if name.endswith("stdev") else variance


records("statistics", "mean", "fmean")(
    lambda trace, data, weights=None: np.average(array(trace, data), weights=weights)
)
records("statistics", "harmonic_mean")(
    lambda trace, data, weights=None: 1 / np.average(1 / array(trace, data), weights=weights)
)
records("statistics", "geometric_mean")(lambda trace, data: np.exp(np.mean(np.log(array(trace, data)))))
