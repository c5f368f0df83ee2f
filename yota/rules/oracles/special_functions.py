"""SciPy's special functions and distribution functions to 50 digits, in terms of mpmath's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

_Functions = dict[str, Callable[..., Any]]


def special(mp: Any) -> _Functions:
    """Functions by the names of their primitives, computed in the context ``mp``."""
    parts = (_elementary, _incomplete, _normal, _bessel, _airy, _series, _polynomials)
    return {name: function for part in parts for name, function in part(mp).items()}


def _root(mp: Any, function: Callable[[Any], Any]) -> Any:
    """Where an increasing function passes 0: halved to a few digits, then by secants."""
    low, high = mp.mpf(-700), mp.mpf(700)
    with mp.workdps(15):
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return mp.findroot(function, (low, high), solver="secant", verify=False)


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
        "radian": lambda g, m, s: mp.pi / 180 * (g + m / 60 + s / 3600),
        "rgamma": mp.rgamma,
        "beta": mp.beta,
        "betaln": lambda a, b: mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b),
        "poch": lambda a, m: mp.gamma(a + m) / mp.gamma(a),
        "binom": mp.binomial,
    }


def _incomplete(mp: Any) -> _Functions:
    """Incomplete gamma and beta functions, and the distribution functions that are made of them."""

    def lower(a: Any, x: Any) -> Any:
        return mp.gammainc(a, 0, x, regularized=True)

    def upper(a: Any, x: Any) -> Any:
        return mp.gammainc(a, x, mp.inf, regularized=True)

    def ratio(a: Any, b: Any, x: Any) -> Any:
        return mp.betainc(a, b, 0, x, regularized=True)

    def logistic(s: Any) -> Any:
        return 1 / (1 + mp.exp(-s))

    def gamma_peak(a: Any, x: Any) -> Any:
        return x**a * mp.exp(-x) / mp.gamma(a)

    def beta_peak(a: Any, b: Any, x: Any, c: Any) -> Any:
        return x**a * c**b / mp.beta(a, b)

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
        "gammaincinv": lambda a, p: mp.exp(_root(mp, lambda s: lower(a, mp.exp(s)) - p)),
        "gammainccinv": lambda a, p: mp.exp(_root(mp, lambda s: p - upper(a, mp.exp(s)))),
        "betainc": ratio,
        "betaincc": lambda a, b, x: ratio(b, a, 1 - x),
        "betaincinv": lambda a, b, p: logistic(_root(mp, lambda s: ratio(a, b, logistic(s)) - p)),
        "stdtr": student,
        "chdtr": lambda v, x: lower(v / 2, x / 2),
        "chdtrc": lambda v, x: upper(v / 2, x / 2),
        "gdtr": lambda a, b, x: lower(b, a * x),
        "pdtr": lambda k, m: upper(mp.floor(k) + 1, m),
        "pdtrc": lambda k, m: lower(mp.floor(k) + 1, m),
        "bdtr": lambda k, n, p: ratio(n - mp.floor(k), mp.floor(k) + 1, 1 - p),
        "bdtrc": lambda k, n, p: ratio(mp.floor(k) + 1, n - mp.floor(k), p),
        "nbdtr": lambda k, n, p: ratio(n, k + 1, p),
        "nbdtrc": lambda k, n, p: ratio(k + 1, n, 1 - p),
        "fdtr": lambda a, b, x: ratio(a / 2, b / 2, a * x / (a * x + b)),
        "fdtrc": lambda a, b, x: ratio(b / 2, a / 2, b / (a * x + b)),
        # The factors of derivatives by shapes, from differences to so many digits.
        "_gamma_order": lambda a, x, p: -mp.diff(lambda s: lower(s, x), a) / gamma_peak(a, x),
        "_gamma_curvature": lambda a, x, p, q: -mp.diff(lambda s: lower(s, x), a, 2) / gamma_peak(a, x),
        "_beta_order": lambda a, b, x, c, p: -mp.diff(lambda s: ratio(s, b, x), a) / beta_peak(a, b, x, c),
        "_beta_curvature": lambda a, b, x, c, p, q: -mp.diff(lambda s: ratio(s, b, x), a, 2) / beta_peak(a, b, x, c),
        "_beta_mixed": lambda a, b, x, c, p, r, q: (
            -mp.diff(lambda s, t: ratio(s, t, x), (a, b), (1, 1)) / beta_peak(a, b, x, c)
        ),
    }


def _normal(mp: Any) -> _Functions:
    def quantile(p: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)

    def beyond(x: Any) -> Any:
        """Terms of alternating signs, or what Poisson's summation makes of them, whichever are fewer."""
        reach = mp.sqrt(mp.dps * mp.log(10) / 2)
        if x > 1:
            return 2 * mp.fsum((-1) ** (k - 1) * mp.exp(-2 * (k * x) ** 2) for k in range(1, int(reach / x) + 3))
        odd = (((2 * k - 1) * mp.pi) ** 2 / 8 for k in range(1, int(reach * x) + 3))
        return 1 - mp.sqrt(2 * mp.pi) / x * mp.fsum(mp.exp(-c / x**2) for c in odd)

    return {
        "erfcinv": lambda x: mp.erfinv(1 - x),
        "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
        "ndtri": quantile,
        "ndtri_exp": lambda x: quantile(mp.exp(x)),
        "nrdtrimn": lambda p, s, x: x - s * quantile(p),
        "nrdtrisd": lambda m, p, x: (x - m) / quantile(p),
        "wofz": lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
        "kolmogorov": beyond,
        "kolmogi": lambda p: mp.exp(_root(mp, lambda s: p - beyond(mp.exp(s)))),
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
    half, besselk = mp.mpf(1) / 2, _macdonald(mp)
    found: _Functions = {
        "jv": mp.besselj,
        "yv": mp.bessely,
        "iv": mp.besseli,
        "kv": besselk,
        "yn": mp.bessely,
        "kn": besselk,
        "jve": mp.besselj,
        "yve": mp.bessely,
        "hankel1": mp.hankel1,
        "hankel2": mp.hankel2,
        "ive": lambda v, x: mp.exp(-abs(x)) * mp.besseli(v, x),
        "kve": lambda v, x: mp.exp(x) * besselk(v, x),
        "hankel1e": lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z),
        "hankel2e": lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z),
        # Kelvin's functions without a pole; their derivatives are made of those of order 1 (DLMF 10.63.2).
        "ber": lambda x: mp.ber(0, x),
        "bei": lambda x: mp.bei(0, x),
        "berp": lambda x: (mp.ber(1, x) + mp.bei(1, x)) / mp.sqrt(2),
        "beip": lambda x: (mp.bei(1, x) - mp.ber(1, x)) / mp.sqrt(2),
    }
    for order in (0, 1):
        for letter in "jyik":
            found[f"{letter}{order}"] = partial(found[f"{letter}v"], order)
        for letter in "ik":
            found[f"{letter}{order}e"] = partial(found[f"{letter}ve"], order)
    scaled = [found[name] for name in ("kve", "hankel1e", "hankel2e")]
    found["_bessel_order"] = lambda v, x, n, k: mp.diff(lambda s: found["ive" if k else "jv"](s, x), v, int(n))
    found["_hankel_order"] = lambda v, x, n, k: mp.diff(lambda s: scaled[int(k)](s, x), v, int(n))
    for name, function in {"jn": mp.besselj, "yn": mp.bessely, "in": mp.besseli, "kn": mp.besselk}.items():
        found[f"spherical_{name}"] = lambda n, x, own=function: mp.sqrt(mp.pi / 2 / x) * own(n + half, x)
    return found


def _airy(mp: Any) -> _Functions:
    """Functions of several results, and integrals of oscillations."""

    def airy(z: Any) -> tuple[Any, ...]:
        return mp.airyai(z), mp.airyai(z, derivative=1), mp.airybi(z), mp.airybi(z, derivative=1)

    def airye(x: Any) -> tuple[Any, ...]:
        scale = mp.exp(2 * mp.power(x, 1.5) / 3)
        ai, aip, bi, bip = airy(x)
        return ai * scale, aip * scale, bi / scale, bip / scale

    def itairy(x: Any) -> tuple[Any, ...]:
        ahead, back = ([f(s, derivative=-1) for f in (mp.airyai, mp.airybi)] for s in (x, -x))
        return (*ahead, *(-each for each in back))

    def pbvv(v: Any, x: Any) -> tuple[Any, ...]:
        a = -v - mp.mpf(1) / 2
        return mp.pcfv(a, x), mp.pcfv(a + 1, x) - x / 2 * mp.pcfv(a, x)

    def fresnel_tail(x: Any, sign: int) -> tuple[Any, Any]:
        turn = mp.exp(sign * 0.25j * mp.pi)
        tail = mp.sqrt(mp.pi) / 2 * turn * mp.erfc(x / turn)
        return tail, tail * mp.exp(-sign * 1j * x * x) / turn / mp.sqrt(mp.pi)

    def ellipj(u: Any, m: Any) -> tuple[Any, ...]:
        sn, cn, dn = (mp.ellipfun(name, u, m=m) for name in ("sn", "cn", "dn"))
        return sn, cn, dn, mp.atan2(sn, cn) + 2 * mp.pi * mp.nint(u / (4 * mp.ellipk(m)))

    return {
        "airy": airy,
        "airye": airye,
        "itairy": itairy,
        "pbdv": lambda v, x: (mp.pcfd(v, x), x / 2 * mp.pcfd(v, x) - mp.pcfd(v + 1, x)),
        "pbvv": pbvv,
        "fresnel": lambda z: (mp.fresnels(z), mp.fresnelc(z)),
        "modfresnelp": lambda x: fresnel_tail(x, 1),
        "modfresnelm": lambda x: fresnel_tail(x, -1),
        "sici": lambda x: (mp.si(x), mp.ci(x)),
        "shichi": lambda x: (mp.shi(x), mp.chi(x)),
        "ellipj": ellipj,
    }


def _series(mp: Any) -> _Functions:
    half = mp.mpf(1) / 2

    def struve_integral(x: Any, sign: int) -> Any:
        return x * x / mp.pi * mp.hyper([1, 1], [3 * half, 3 * half, 2], sign * x * x / 4)

    def carlson(x: Any, z: Any, w: Any, p: Any, i: Any, j: Any, k: Any, n: Any) -> Any:
        # In log(t) the integrand decreases exponentially and has no singularity within this distance of the real line:
        # the trapezoidal rule converges as quickly.
        distance = mp.pi - max(abs(mp.arg(each)) for each in (x, z, w, p))
        step = 2 * mp.pi * distance / (mp.prec * mp.ln2)
        total, t, ratio = mp.zero, mp.exp(-120), mp.exp(step)
        for _ in range(int(240 / step) + 1):
            first, second, third = t + x, t + z, t + w
            roots = mp.sqrt(first) * mp.sqrt(second) * mp.sqrt(third)
            total += t / (roots * first**i * second**j * third**k * (t + p) ** n)
            t *= ratio
        return total * step

    def it2struve0(x: Any) -> Any:
        return mp.pi / 2 - 2 * x / mp.pi * mp.hyper([half, 1], [3 * half, 3 * half, 3 * half], -x * x / 4)

    return {
        **{name: getattr(mp, name) for name in ("hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "lambertw", "agm")},
        **{name: getattr(mp, name) for name in ("ellipk", "ellipe", "elliprc", "elliprd", "elliprf", "elliprj")},
        "_carlson": carlson,
        "_hurwitz": mp.zeta,
        "ellipkm1": lambda p: mp.ellipk(1 - p),
        "ellipkinc": mp.ellipf,
        "ellipeinc": mp.ellipe,
        "expi": mp.ei,
        "exp1": mp.e1,
        "expn": mp.expint,
        "spence": lambda x: mp.polylog(2, 1 - x),
        "wrightomega": lambda x: mp.re(mp.lambertw(mp.exp(x))),
        "struve": mp.struveh,
        "modstruve": mp.struvel,
        "itstruve0": lambda x: struve_integral(x, -1),
        "itmodstruve0": lambda x: struve_integral(x, 1),
        "it2struve0": it2struve0,
    }


def _polynomials(mp: Any) -> _Functions:
    def shifted(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda n, x: function(n, 2 * x - 1)

    def none_below(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda n, *rest: mp.mpf(0) if n < 0 else function(n, *rest)

    def sh_jacobi(n: Any, p: Any, q: Any, x: Any) -> Any:
        return mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n)

    found = {
        **{name: getattr(mp, name) for name in ("legendre", "chebyt", "chebyu", "gegenbauer", "jacobi", "hermite")},
        "chebyc": lambda n, x: 2 * mp.chebyt(n, x / 2),
        "chebys": lambda n, x: mp.chebyu(n, x / 2),
        **{f"sh_{name}": shifted(getattr(mp, name)) for name in ("legendre", "chebyt", "chebyu")},
        "sh_jacobi": sh_jacobi,
        "laguerre": lambda n, x: mp.laguerre(n, 0, x),
        "genlaguerre": mp.laguerre,
        "hermitenorm": lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n,
    }
    return {
        **{f"eval_{name}": none_below(function) for name, function in found.items()},
        "sph_harm_y": lambda n, m, theta, phi: mp.mpf(0) if abs(m) > n else mp.spherharm(int(n), int(m), theta, phi),
    }
