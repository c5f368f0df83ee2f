"""Distribution functions of scipy.special to 50 digits, in terms of mpmath's incomplete functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["distributions", "root"]

_Functions = dict[str, Callable[..., Any]]


def root(mp: Any, function: Callable[[Any], Any]) -> Any:
    """Where an increasing function passes 0: halved to a few digits, then by secants."""
    low, high = mp.mpf(-700), mp.mpf(700)
    with mp.workdps(15):
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return mp.findroot(function, (low, high), solver="secant", verify=False)


def distributions(mp: Any, known: _Functions) -> _Functions:
    """Functions by the names of their primitives; ``known`` has the incomplete gamma and beta functions."""
    return {**_gamma(known), **_counted(mp, known), **_beta(known), **_normal(mp), **_shapes(mp, known)}


def _shapes(mp: Any, known: _Functions) -> _Functions:
    """What the derivatives by shapes are made of, from differences to so many digits."""
    lower, ratio = known["gammainc"], known["betainc"]
    return {
        "_gamma_order": lambda a, x, p: -mp.diff(lambda s: lower(s, x), a) * mp.gamma(a) / (x**a * mp.exp(-x)),
        "_beta_order": lambda a, b, x, c, p: -mp.diff(lambda s: ratio(s, b, x), a) * mp.beta(a, b) / (x**a * c**b),
    }


def _gamma(known: _Functions) -> _Functions:
    lower, upper = known["gammainc"], known["gammaincc"]
    return {
        "chdtr": lambda v, x: lower(v / 2, x / 2),
        "chdtrc": lambda v, x: upper(v / 2, x / 2),
        "gdtr": lambda a, b, x: lower(b, a * x),
    }


def _counted(mp: Any, known: _Functions) -> _Functions:
    lower, upper, ratio = (known[name] for name in ("gammainc", "gammaincc", "betainc"))
    return {
        "pdtr": lambda k, m: upper(mp.floor(k) + 1, m),
        "pdtrc": lambda k, m: lower(mp.floor(k) + 1, m),
        "bdtr": lambda k, n, p: ratio(n - mp.floor(k), mp.floor(k) + 1, 1 - p),
        "bdtrc": lambda k, n, p: ratio(mp.floor(k) + 1, n - mp.floor(k), p),
        "nbdtr": lambda k, n, p: ratio(n, k + 1, p),
        "nbdtrc": lambda k, n, p: ratio(k + 1, n, 1 - p),
    }


def _beta(known: _Functions) -> _Functions:
    ratio = known["betainc"]
    return {
        "fdtr": lambda a, b, x: ratio(a / 2, b / 2, a * x / (a * x + b)),
        "fdtrc": lambda a, b, x: ratio(b / 2, a / 2, b / (a * x + b)),
    }


def _normal(mp: Any) -> _Functions:
    def quantile(p: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)

    def beyond(x: Any) -> Any:
        """Terms of alternating signs, or what Poisson's summation makes of them, whichever are fewer."""
        if x > 1:
            return 2 * mp.fsum((-1) ** (k - 1) * mp.exp(-2 * (k * x) ** 2) for k in range(1, last(x)))
        return 1 - mp.sqrt(2 * mp.pi) / x * mp.fsum(mp.exp(-c / x**2) for c in odd(x))

    def last(x: Any) -> int:
        return int(mp.sqrt(mp.dps * mp.log(10) / 2) / x) + 3

    def odd(x: Any) -> list[Any]:
        count = int(mp.sqrt(mp.dps * mp.log(10) / 2) * x) + 3
        return [((2 * k - 1) * mp.pi) ** 2 / 8 for k in range(1, count)]

    return {
        "nrdtrimn": lambda p, s, x: x - s * quantile(p),
        "nrdtrisd": lambda m, p, x: (x - m) / quantile(p),
        "kolmogorov": beyond,
        "kolmogi": lambda p: mp.exp(root(mp, lambda s: p - beyond(mp.exp(s)))),
    }
