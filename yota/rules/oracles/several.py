"""SciPy's distribution functions, functions of several results and those akin to Bessel functions, to 50 digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def waves(mp: Any) -> _Functions:
    """Functions by the names of their primitives, computed in the context ``mp``."""
    parts = (_airy, _integrals, _elliptic, _struve, _scaled, _others)
    return {name: function for part in parts for name, function in part(mp).items()}


def _airy(mp: Any) -> _Functions:
    def airy(z: Any) -> tuple[Any, ...]:
        return mp.airyai(z), mp.airyai(z, derivative=1), mp.airybi(z), mp.airybi(z, derivative=1)

    def airye(x: Any) -> tuple[Any, ...]:
        scale = mp.exp(2 * mp.power(x, 1.5) / 3)
        ai, aip, bi, bip = airy(x)
        return ai * scale, aip * scale, bi / scale, bip / scale

    def itairy(x: Any) -> tuple[Any, ...]:
        ahead, back = ([f(s, derivative=-1) for f in (mp.airyai, mp.airybi)] for s in (x, -x))
        return (*ahead, *(-each for each in back))

    def pbdv(v: Any, x: Any) -> tuple[Any, ...]:
        return mp.pcfd(v, x), x / 2 * mp.pcfd(v, x) - mp.pcfd(v + 1, x)

    def pbvv(v: Any, x: Any) -> tuple[Any, ...]:
        a = -v - mp.mpf(1) / 2
        return mp.pcfv(a, x), mp.pcfv(a + 1, x) - x / 2 * mp.pcfv(a, x)

    return {"airy": airy, "airye": airye, "itairy": itairy, "pbdv": pbdv, "pbvv": pbvv}


def _integrals(mp: Any) -> _Functions:
    def fresnel_tail(x: Any, sign: int) -> tuple[Any, Any]:
        turn = mp.exp(sign * 0.25j * mp.pi)
        tail = mp.sqrt(mp.pi) / 2 * turn * mp.erfc(x / turn)
        return tail, tail * mp.exp(-sign * 1j * x * x) / turn / mp.sqrt(mp.pi)

    return {
        "fresnel": lambda z: (mp.fresnels(z), mp.fresnelc(z)),
        "modfresnelp": lambda x: fresnel_tail(x, 1),
        "modfresnelm": lambda x: fresnel_tail(x, -1),
        "sici": lambda x: (mp.si(x), mp.ci(x)),
        "shichi": lambda x: (mp.shi(x), mp.chi(x)),
    }


def _elliptic(mp: Any) -> _Functions:
    def ellipj(u: Any, m: Any) -> tuple[Any, ...]:
        sn, cn, dn = (mp.ellipfun(name, u, m=m) for name in ("sn", "cn", "dn"))
        return sn, cn, dn, mp.atan2(sn, cn) + 2 * mp.pi * mp.nint(u / (4 * mp.ellipk(m)))

    return {"ellipj": ellipj, "elliprf": mp.elliprf, "elliprc": mp.elliprc, "agm": mp.agm}


def _struve(mp: Any) -> _Functions:
    half = mp.mpf(1) / 2

    def integral(x: Any, sign: int) -> Any:
        return x * x / mp.pi * mp.hyper([1, 1], [3 * half, 3 * half, 2], sign * x * x / 4)

    return {
        "struve": mp.struveh,
        "modstruve": mp.struvel,
        "itstruve0": lambda x: integral(x, -1),
        "itmodstruve0": lambda x: integral(x, 1),
        "it2struve0": lambda x: (
            mp.pi / 2 - 2 * x / mp.pi * mp.hyper([half, 1], [3 * half, 3 * half, 3 * half], -x * x / 4)
        ),
    }


def _scaled(mp: Any) -> _Functions:
    return {
        "jve": mp.besselj,
        "yve": mp.bessely,
        "hankel1e": lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z),
        "hankel2e": lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z),
    }


def _others(mp: Any) -> _Functions:
    return {
        "wofz": lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
        "eval_sh_jacobi": lambda n, p, q, x: (
            mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n) if n >= 0 else mp.mpf(0)
        ),
        "radian": lambda g, m, s: mp.pi / 180 * (g + m / 60 + s / 3600),
    }
