"""Names of primitives and macros in JAX, PyTorch and autograd."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of rules in one library.

    name: the library, and its template.
    functions: function names by primitive names.
    keywords: keywords with another name.
    lifted: functions whose arguments must be arrays, not Python numbers.
    static: spelling of static functions; ``{0}`` is their argument.
    imports: names that a module may need, with their import statements.
    """

    name: str
    functions: Mapping[str, str]
    static: Mapping[str, str]
    imports: Mapping[str, str]
    keywords: Mapping[str, str] = field(default_factory=dict)
    lifted: bool = False


_SAME = (
    "absolute sign sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh "
    "arcsinh arccosh arctanh square reciprocal hypot maximum minimum fmax fmin where floor ceil trunc rint copysign "
    "heaviside logaddexp logaddexp2 equal not_equal less less_equal greater greater_equal logical_and logical_or "
    "logical_xor logical_not isnan isfinite isinf real imag conjugate sinc deg2rad rad2deg sum prod max min cumsum "
    "cumprod reshape transpose broadcast_to concatenate stack matmul einsum float_power "
    "fabs power remainder fmod floor_divide cbrt"
).split()
_SPECIAL = (
    "erf erfc erfinv expit logit gammaln betainc gammainc gammaincc ndtr ndtri log_ndtr xlogy xlog1py i0 i0e i1 i1e "
    "zeta"
)
_LINEAR = "inv det solve cholesky pinv"

_NUMPY_STATIC = {
    "shape": "{library}.shape({0})",
    "ndim": "{library}.ndim({0})",
    "size": "{library}.size({0})",
    "dtype": "{0}.dtype",
}


def _table(prefix: str, names: str | list[str], **others: str) -> dict[str, str]:
    words = names.split() if isinstance(names, str) else names
    return {**{name: f"{prefix}.{name}" for name in words}, **others}


_JAX = Dialect(
    "jax",
    {
        **_table("jnp", [*_SAME, "logaddexp2"], absolute="jnp.abs", fabs="jnp.abs"),
        **_table("special", _SPECIAL, psi="special.digamma", entr="special.entr", rel_entr="special.rel_entr"),
        **_table("jnp.linalg", _LINEAR),
        "astype": "jnp.astype",
    },
    {name: text.replace("{library}", "jnp") for name, text in _NUMPY_STATIC.items()},
    {"jax": "import jax", "jnp": "import jax.numpy as jnp", "special": "import jax.scipy.special as special"},
)

_UNKNOWN = ("cumprod", "cbrt", "copysign", "heaviside", "float_power", "hypot")
"""Functions that autograd does not differentiate."""

_AUTOGRAD = Dialect(
    "autograd",
    {
        **_table(
            "anp",
            [name for name in _SAME if name not in _UNKNOWN],
            absolute="anp.abs",
            fabs="anp.abs",
            power="anp.power",
        ),
        **_table("special", "erf erfc erfinv expit logit gammaln betainc gammainc gammaincc i0 i1", psi="special.psi"),
        **_table("special", "gamma beta rgamma j0 j1 y0 y1 jn yn"),
        **_table("anp.linalg", _LINEAR),
    },
    {name: text.replace("{library}", "anp") for name, text in _NUMPY_STATIC.items()},
    {
        "anp": "import autograd.numpy as anp",
        "special": "import autograd.scipy.special as special",
        "make_vjp": "from autograd import make_vjp",
        "extend": "from autograd.extend import {0}, primitive",
    },
)

_TORCH_SAME = (
    "sign sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh square reciprocal hypot maximum minimum "
    "fmax fmin where floor ceil trunc copysign heaviside logaddexp logaddexp2 fmod remainder logical_and logical_or "
    "logical_xor logical_not isnan isfinite isinf real imag sinc deg2rad rad2deg float_power reshape broadcast_to "
    "matmul concatenate stack einsum"
)

_TORCH = Dialect(
    "torch",
    {
        **_table(
            "torch", _TORCH_SAME, absolute="torch.abs", fabs="torch.abs", rint="torch.round", conjugate="torch.conj"
        ),
        **{f"arc{name}": f"torch.a{name}" for name in "sin cos tan tan2 sinh cosh tanh".split()},
        **_table("torch", "", equal="torch.eq", not_equal="torch.ne", less="torch.lt", less_equal="torch.le"),
        **_table("torch", "", greater="torch.gt", greater_equal="torch.ge", power="torch.pow"),
        **_table("torch", "", floor_divide="torch.floor_divide", psi="torch.digamma", gammaln="torch.lgamma"),
        **_table(
            "torch.special", "erf erfc erfinv expit logit ndtr ndtri log_ndtr xlogy xlog1py i0 i0e i1 i1e zeta entr"
        ),
        **_table("torch.linalg", _LINEAR),
        "sum": "torch.sum",
        "conjugate": "torch.conj",
    },
    {"shape": "{0}.shape", "ndim": "{0}.ndim", "size": "{0}.numel()", "dtype": "{0}.dtype"},
    {"torch": "import torch"},
    keywords={"axis": "dim", "keepdims": "keepdim"},
    lifted=True,
)

DIALECTS: Mapping[str, Dialect] = {each.name: each for each in (_JAX, _TORCH, _AUTOGRAD)}
"""Dialects by name."""
