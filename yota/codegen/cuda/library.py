"""Which functions CuPy has, of those that rules are for."""

from __future__ import annotations

__all__ = ["has"]

_ABSENT = {"numpy": frozenset({"spacing"})}
"""Of modules of which CuPy has nearly all."""
_PRESENT = {
    "scipy.linalg": frozenset({"expm", "solve_triangular"}),
    "scipy.signal": frozenset({"convolve", "correlate", "lfilter"}),
    "scipy.special": frozenset(
        (
            "bdtr bdtrc bdtri beta betainc betaincinv betaln binom boxcox boxcox1p cbrt chdtr chdtrc chdtri cosdg"
            " cosm1 cotdg ellipeinc ellipj ellipk ellipkinc ellipkm1 entr erf erfc erfcinv erfcx erfinv exp1 exp10"
            " exp2 expi expit expm1 expn exprel fdtr fdtrc fdtri gamma gammainc gammaincc gammainccinv gammaincinv"
            " gammaln gammasgn gdtr gdtrc huber i0 i0e i1 i1e inv_boxcox inv_boxcox1p j0 j1 k0 k0e k1 k1e kl_div"
            " lambertw log1p log_expit log_ndtr loggamma logit lpmv nbdtr nbdtrc nbdtri ndtr ndtri pdtr pdtrc"
            " pdtri poch pseudo_huber psi radian rel_entr rgamma round shichi sici sindg sph_harm_y spherical_yn"
            " tandg wright_bessel xlog1py xlogy y0 y1 yn zeta zetac"
        ).split()
    ),
}
"""Of modules of which it has some: what CuPy 14.0 has."""
_ON_THE_HOST = frozenset({"yota.ir.factors", "yota.ir.hosted", "yota.ir.incomplete", "yota.ir.linear_solvers"})
"""Functions in NumPy's and SciPy's terms, and those that call another library."""


def has(target: str) -> bool:
    """Whether CuPy computes the function with this full name, as far as is known: nothing is of the user's own.

    Examples
    --------
    >>> has("scipy.special.expit"), has("scipy.special.hyp2f1"), has("scipy.special._ufuncs._smirnovp")
    (True, False, False)
    """
    module, _, name = target.rpartition(".")
    if module in _PRESENT:
        return name in _PRESENT[module]
    if module in _ABSENT:
        return name not in _ABSENT[module]
    return module not in _ON_THE_HOST and not module.startswith("scipy.")
