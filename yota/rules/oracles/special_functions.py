"""SciPy's special functions to 50 digits, in terms of mpmath's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.rules.oracles.several import distributions, root, waves

_Functions = dict[str, Callable[..., Any]]


def special(mp: Any) -> _Functions:
    """Functions by the names of their primitives, computed in the context ``mp``."""
    parts = (_errors, _gamma, _incomplete, _elementary, _bessel, _kelvin, _spherical, _series, _polynomials)
    found = {name: function for part in parts for name, function in part(mp).items()}
    return {**found, **waves(mp), **distributions(mp, found)}


def _errors(mp: Any) -> _Functions:
    return {
        "erfcinv": lambda x: mp.erfinv(1 - x),
        "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        "ndtri": lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
        "ndtri_exp": lambda x: mp.sqrt(2) * mp.erfinv(2 * mp.exp(x) - 1),
    }


def _gamma(mp: Any) -> _Functions:
    return {
        "rgamma": mp.rgamma,
        "beta": mp.beta,
        "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
        "poch": lambda a, m: mp.gamma(a + m) / mp.gamma(a),
        "binom": mp.binomial,
    }


def _incomplete(mp: Any) -> _Functions:
    def lower(a: Any, x: Any) -> Any:
        return mp.gammainc(a, 0, x, regularized=True)

    def upper(a: Any, x: Any) -> Any:
        return mp.gammainc(a, x, mp.inf, regularized=True)

    def ratio(a: Any, b: Any, x: Any) -> Any:
        return mp.betainc(a, b, 0, x, regularized=True)

    def logistic(s: Any) -> Any:
        return 1 / (1 + mp.exp(-s))

    def student(v: Any, t: Any) -> Any:
        half = mp.mpf(1) / 2
        # Near 0 the tail's argument is nearly 1, and would have lost its digits.
        if t * t < v:
            return half + mp.sign(t) * ratio(half, v / 2, t * t / (v + t * t)) / 2
        tail = ratio(v / 2, half, v / (v + t * t)) / 2
        return tail if t < 0 else 1 - tail

    return {
        "gammainc": lower,
        "gammaincc": upper,
        "gammaincinv": lambda a, p: mp.exp(root(mp, lambda s: lower(a, mp.exp(s)) - p)),
        "gammainccinv": lambda a, p: mp.exp(root(mp, lambda s: p - upper(a, mp.exp(s)))),
        "betainc": ratio,
        "betaincc": lambda a, b, x: ratio(b, a, 1 - x),
        "betaincinv": lambda a, b, p: logistic(root(mp, lambda s: ratio(a, b, logistic(s)) - p)),
        "stdtr": student,
    }


def _elementary(mp: Any) -> _Functions:
    def powm1(x: Any, p: Any) -> Any:
        return mp.expm1(p * mp.log(x))

    def boxcox(x: Any, p: Any) -> Any:
        return mp.log(x) if p == 0 else powm1(x, p) / p

    def inv_boxcox(z: Any, p: Any) -> Any:
        return mp.exp(z) if p == 0 else mp.exp(mp.log1p(p * z) / p)

    return {
        "huber": lambda delta, r: r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2),
        "powm1": powm1,
        "boxcox": boxcox,
        "boxcox1p": lambda x, p: boxcox(1 + x, p),
        "inv_boxcox": inv_boxcox,
        "inv_boxcox1p": lambda z, p: inv_boxcox(z, p) - 1,
    }


def _macdonald(mp: Any) -> Callable[..., Any]:
    """The function K by the trapezoidal rule, which converges at once; mpmath's own is slow for whole orders.

    NIST Handbook of Mathematical Functions, 10.32.9, and 10.40.2 far out.
    """

    def function(order: Any, x: Any) -> Any:
        if x > 10**60 * (1 + order**2):
            return mp.sqrt(mp.pi / (2 * x)) * mp.exp(-x)
        # Near 0 there are too many steps; beyond, each loses as many digits as x has before the point.
        if not mp.mpf("1e-20") < x < 10**4:
            return mp.besselk(order, x)
        with mp.extradps(5):
            return integral(order, x)

    def integral(order: Any, x: Any) -> Any:
        digits = mp.mpf(mp.dps + 15) * mp.log(10)
        wide = digits + abs(order)
        step = mp.pi / max(wide / mp.pi, mp.sqrt((x + abs(order)) * wide))
        end = mp.zero
        for _ in range(8):
            end = mp.acosh(1 + (digits + abs(order) * end) / x)
        terms = (mp.exp(-x * mp.cosh(k * step)) * mp.cosh(order * k * step) for k in range(1, int(end / step) + 2))
        return step * (mp.exp(-x) / 2 + mp.fsum(terms))

    return function


def _bessel(mp: Any) -> _Functions:
    besselk = _macdonald(mp)
    found: _Functions = {"jv": mp.besselj, "yv": mp.bessely, "iv": mp.besseli, "kv": besselk}
    found.update(yn=mp.bessely, kn=besselk, hankel1=mp.hankel1, hankel2=mp.hankel2)
    for letter, function in (("j", mp.besselj), ("y", mp.bessely), ("i", mp.besseli), ("k", besselk)):
        for order in (0, 1):
            found[f"{letter}{order}"] = _of_order(function, order)
    found["ive"] = lambda v, x: mp.exp(-abs(x)) * mp.besseli(v, x)
    found["kve"] = lambda v, x: mp.exp(x) * besselk(v, x)
    hankel: list[Callable[..., Any]] = [
        found["kve"],
        lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z),
        lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z),
    ]
    found["_bessel_order"] = lambda v, x, n, k: mp.diff(lambda s: found["ive" if k else "jv"](s, x), v, int(n))
    found["_hankel_order"] = lambda v, x, n, k: mp.diff(lambda s: hankel[int(k)](s, x), v, int(n))
    for order in (0, 1):
        found[f"i{order}e"] = _of_order(found["ive"], order)
        found[f"k{order}e"] = _of_order(found["kve"], order)
    return found


def _kelvin(mp: Any) -> _Functions:
    """Kelvin's functions without a pole; their derivatives are made of those of order 1 (DLMF 10.63.2)."""
    return {
        "ber": lambda x: mp.ber(0, x),
        "bei": lambda x: mp.bei(0, x),
        "berp": lambda x: (mp.ber(1, x) + mp.bei(1, x)) / mp.sqrt(2),
        "beip": lambda x: (mp.bei(1, x) - mp.ber(1, x)) / mp.sqrt(2),
    }


def _of_order(function: Callable[..., Any], order: int) -> Callable[..., Any]:
    return lambda x: function(order, x)


def _spherical(mp: Any) -> _Functions:
    half = mp.mpf(1) / 2

    def scaled(function: Callable[..., Any], factor: Any) -> Callable[..., Any]:
        return lambda n, x: mp.sqrt(factor / x) * function(n + half, x)

    found = {"jn": mp.besselj, "yn": mp.bessely, "in": mp.besseli, "kn": mp.besselk}
    return {
        **{f"spherical_{name}": scaled(function, mp.pi / 2) for name, function in found.items()},
        "sph_harm_y": lambda n, m, theta, phi: mp.mpf(0) if abs(m) > n else mp.spherharm(int(n), int(m), theta, phi),
    }


def _series(mp: Any) -> _Functions:
    return {
        "hyp0f1": mp.hyp0f1,
        "hyp1f1": mp.hyp1f1,
        "hyperu": mp.hyperu,
        "hyp2f1": mp.hyp2f1,
        "ellipk": mp.ellipk,
        "ellipkm1": lambda p: mp.ellipk(1 - p),
        "ellipe": mp.ellipe,
        "ellipkinc": mp.ellipf,
        "ellipeinc": mp.ellipe,
        "elliprd": mp.elliprd,
        "expi": mp.ei,
        "exp1": mp.e1,
        "expn": mp.expint,
        "spence": lambda x: mp.re(mp.polylog(2, 1 - x)),
        "lambertw": mp.lambertw,
        "wrightomega": lambda x: mp.re(mp.lambertw(mp.exp(x))),
    }


def _polynomials(mp: Any) -> _Functions:
    def shifted(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda n, x: function(n, 2 * x - 1)

    def none_below(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda n, *rest: mp.mpf(0) if n < 0 else function(n, *rest)

    found = {
        "legendre": mp.legendre,
        "chebyt": mp.chebyt,
        "chebyu": mp.chebyu,
        "chebyc": lambda n, x: 2 * mp.chebyt(n, x / 2),
        "chebys": lambda n, x: mp.chebyu(n, x / 2),
        "sh_legendre": shifted(mp.legendre),
        "sh_chebyt": shifted(mp.chebyt),
        "sh_chebyu": shifted(mp.chebyu),
        "gegenbauer": mp.gegenbauer,
        "jacobi": mp.jacobi,
        "laguerre": lambda n, x: mp.laguerre(n, 0, x),
        "genlaguerre": mp.laguerre,
        "hermite": mp.hermite,
        "hermitenorm": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n,
    }
    return {f"eval_{name}": none_below(function) for name, function in found.items()}
