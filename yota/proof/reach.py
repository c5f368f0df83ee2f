"""How far the oracles reach: where 50 digits of a special function can be computed, and in a short time."""

from __future__ import annotations

__all__ = ["DIGITS", "FEWER", "RANGES", "TIED"]

RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("sin", "x"): (-1e4, 1e4),
    ("cos", "x"): (-1e4, 1e4),
    ("tan", "x"): (-50, 50),
    ("stdtrit", "v"): (0.05, 1e3),
    ("_gamma_slope", "x"): (1e-3, 30),
    ("sinc", "x"): (-50, 50),
    ("hyp2f1", "c"): (0.5, 30),
    ("hyp2f1", "a"): (0.1, 10),
    ("hyp2f1", "b"): (0.1, 10),
    ("hyp2f1", "x"): (-90, 0.9),
    ("hyperu", "a"): (0.1, 10),
    ("hyperu", "b"): (0.1, 10),
    ("hyperu", "x"): (0.1, 30),
    ("eval_jacobi", "a"): (0.1, 10),
    ("eval_jacobi", "b"): (0.1, 10),
    ("erf", "x"): (-9, 9),
    ("erfc", "x"): (-9, 9),
    ("ndtr", "x"): (-12, 12),
    ("log_ndtr", "x"): (-300, 12),
    ("ndtri_exp", "x"): (-30, 0),
    ("binom", "n"): (20, 30),
    ("binom", "k"): (1, 19),
    ("zeta", "s"): (1.1, 9),
    ("zeta", "x"): (1e-3, 1e3),
    ("y1", "x"): (1e-3, 9),
    ("yn", "x"): (1e-3, 9),
    ("gammaincc", "a"): (1e-6, 90),
    ("gammaincc", "x"): (1e-6, 90),
    ("betaincc", "a"): (1e-6, 90),
    ("betaincc", "b"): (1e-6, 90),
    ("gammaincinv", "a"): (0.1, 30),
    ("gammainccinv", "a"): (0.1, 30),
    ("betaincinv", "a"): (0.1, 30),
    ("betaincinv", "b"): (0.1, 30),
    ("_erfcx_slope", "x"): (-5, 300),
    ("ncfdtri", "a"): (2, 9),
    ("ncfdtri", "b"): (4, 9),
    ("chndtrinc", "x"): (9, 12),
    ("chndtrinc", "v"): (1, 3),
    ("chndtrinc", "p"): (0.1, 0.5),
    ("nrdtrisd", "p"): (0.6, 1),
    ("besselpoly", "a"): (0, 3),
}
"""Ranges of operands that are smaller than the rule's own, by the rule's name and the operand's."""

DIGITS = {"powm1": 300, "boxcox": 300, "boxcox1p": 300, "gammainc": 250, "gammaincc": 250, "betaincc": 250}
"""Where the derivative is smaller than the function by many orders, more digits are computed with."""

TIED = {
    "pro_ang1_cv": ("cv", "pro_cv", ("m", "n", "c")),
    "pro_rad1_cv": ("cv", "pro_cv", ("m", "n", "c")),
    "obl_ang1_cv": ("cv", "obl_cv", ("m", "n", "c")),
    "obl_rad1_cv": ("cv", "obl_cv", ("m", "n", "c")),
}
"""Operands that have to be what a function gives for others, by the rule's name."""

FEWER = {
    "gammaincinv": 3,
    "gammainccinv": 2,
    "gammaincc": 4,
    "betaincc": 4,
    "betaincinv": 2,
    "hyperu": 3,
    "yn": 3,
    "y1": 4,
    "y0": 4,
    "zeta": 4,
    "kn": 4,
    "kve": 5,
    "k1e": 5,
}
"""How many points are tried where one takes long."""
