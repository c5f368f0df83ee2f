"""How elementwise primitives are spelled in C: operators, functions of libm, and small inline functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.codegen.c.types import REALS, c_type, real_type, suffix
from yota.codegen.spelling import Spelling, binary
from yota.ir.extents import AND, CHOICE, COMPARE, OR, PRODUCT, SAME, SUM, UNARY
from yota.ir.types import TensorType

_FUNCTION_COST, _DIVISION_COST = 12, 4


_OPERATORS: Mapping[str, Spelling] = {
    "add": binary("+", SUM),
    "subtract": binary("-", SUM),
    "multiply": binary("*", PRODUCT),
    "divide": binary("/", PRODUCT),
    "negative": Spelling("-{0}", UNARY, (UNARY,)),
    "less": binary("<", COMPARE),
    "less_equal": binary("<=", COMPARE),
    "greater": binary(">", COMPARE),
    "greater_equal": binary(">=", COMPARE),
    "equal": binary("==", SAME),
    "not_equal": binary("!=", SAME),
    "logical_and": binary("&&", AND),
    "logical_or": binary("||", OR),
    "logical_not": Spelling("!{0}", UNARY, (UNARY,)),
    "where": Spelling("{0} ? {1} : {2}", CHOICE, (OR, OR, CHOICE)),
}
_VECTOR = {
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10",
    "log1p": "log1p", "cbrt": "cbrt", "erf": "erf", "erfc": "erfc",
}  # fmt: skip
"""Functions of one number with a vector form in glibc's libmvec."""
_VECTOR_PAIRS = {"power": "pow", "arctan2": "atan2", "hypot": "hypot"}
_PLAIN = {
    "sqrt": "sqrt", "absolute": "fabs", "abs": "fabs", "fabs": "fabs", "floor": "floor", "ceil": "ceil",
    "trunc": "trunc", "rint": "rint",
}  # fmt: skip
_PARTS = {
    "maximum": "larger", "minimum": "smaller", "fmax": "larger_number", "fmin": "smaller_number",
    "sign": "sign_of", "remainder": "remainder_of", "floor_divide": "floored_quotient", "heaviside": "heaviside",
    "logaddexp": "log_add_exp", "expit": "logistic", "log_expit": "log_logistic", "logit": "log_odds",
}  # fmt: skip
_OF_ONE = ("sign", "expit", "log_expit", "logit")
_WHOLE = {
    "maximum": "whole_larger", "minimum": "whole_smaller", "remainder": "whole_remainder",
    "floor_divide": "whole_quotient",
}  # fmt: skip
"""Inline functions of two whole numbers with a sign."""
SCIPY = frozenset(f"scipy.special.{name}" for name in ("erf", "erfc", "expit", "log_expit", "logit"))
_TESTS = {"isnan": "isnan({0})", "isinf": "isinf({0})", "isfinite": "isfinite({0})", "signbit": "signbit({0})"}
_COMPLEX_FUNCTIONS = {
    "exp": "cexp", "log": "clog", "sqrt": "csqrt", "sin": "csin", "cos": "ccos", "tan": "ctan", "sinh": "csinh",
    "cosh": "ccosh", "tanh": "ctanh", "conjugate": "conj", "conj": "conj",
}  # fmt: skip
_PI = repr(math.pi)
_DEGREES = {
    "deg2rad": f"{_PI} / 180.0",
    "radians": f"{_PI} / 180.0",
    "rad2deg": f"180.0 / {_PI}",
    "degrees": f"180.0 / {_PI}",
}
_ALIASES = {"mod": "remainder", "true_divide": "divide", "pow": "power"}
_DECISIONS = frozenset("less less_equal greater greater_equal equal not_equal".split())
_LOGIC = frozenset("logical_and logical_or logical_not".split())
EXACT = frozenset(
    "add subtract multiply divide negative positive square sqrt absolute abs fabs floor ceil trunc rint where maximum"
    " minimum fmax fmin sign copysign reciprocal real imag conjugate astype isnan isinf isfinite signbit".split()
) | _DECISIONS | _LOGIC  # fmt: skip
"""Where C's result has the bits of NumPy's."""
EXACT_OF_REAL = frozenset("absolute abs multiply square divide reciprocal".split())
"""Those of them for which that is so of real numbers alone: for others NumPy's vector code rounds differently."""


def computed_in(name: str, types: Sequence[TensorType], result: TensorType) -> np.dtype[Any]:
    """The dtype that an op's operands are taken in."""
    name = _ALIASES.get(name, name)
    if name in _DECISIONS or name in _TESTS:
        samples = [type.dtype.type(0).item() if type.weak else type.dtype for type in types]
        return np.dtype(np.result_type(*samples))
    if name in _LOGIC:
        return np.dtype(bool)
    if name in ("real", "imag", "absolute", "abs") and types[0].is_complex:
        return types[0].dtype
    return result.dtype


def spell(name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
    """How an op on operands of ``dtype`` is written; None if it is not known."""
    name = _ALIASES.get(name, name)
    if dtype.kind == "c":
        return _complex(name, dtype)
    if dtype.kind in "iu" or dtype.kind == "b":
        return _whole(name, dtype, result)
    return _real(name, dtype)


def _whole(name: str, dtype: np.dtype[Any], result: np.dtype[Any]) -> Spelling | None:
    if dtype.kind == "b" and result.kind == "b":
        return _OPERATORS[name] if name in _LOGIC | {"where", "equal", "not_equal"} else None
    if name in _DECISIONS or name in _LOGIC:
        return _OPERATORS[name]
    if name in ("add", "subtract", "multiply", "negative", "where") and dtype.kind == "i":
        return _OPERATORS[name]
    if name in _WHOLE and dtype.kind == "i":
        return Spelling(f"{_WHOLE[name]}_{c_type(dtype)}({{0}}, {{1}})", part=_WHOLE[name])
    return None


def _real(name: str, dtype: np.dtype[Any]) -> Spelling | None:
    end = suffix(dtype)
    if name in _OPERATORS:
        return _OPERATORS[name]
    if name in ("positive", "real", "conjugate", "conj"):
        return Spelling("{0}", CHOICE)
    if name == "square":
        return Spelling(f"square{end}({{0}})", part="square")
    if name == "reciprocal":
        return Spelling(f"1.0{end} / {{0}}", PRODUCT, (UNARY,))
    if name in _VECTOR:
        function = _VECTOR[name] + end
        return Spelling(f"{function}({{0}})", simd=function)
    if name in _VECTOR_PAIRS:
        function = _VECTOR_PAIRS[name] + end
        return Spelling(f"{function}({{0}}, {{1}})", simd=function)
    if name in _PLAIN:
        return Spelling(f"{_PLAIN[name]}{end}({{0}})")
    if name in ("copysign", "fmod"):
        return Spelling(f"{name}{end}({{0}}, {{1}})")
    if name in _PARTS:
        holes = "{0}" if name in _OF_ONE else "{0}, {1}"
        return Spelling(f"{_PARTS[name]}{end}({holes})", part=_PARTS[name])
    if name in _TESTS:
        return Spelling(f"({_TESTS[name]} != 0)")
    if name in _DEGREES:
        factor = f"(float)({_DEGREES[name]})" if end else f"({_DEGREES[name]})"
        return Spelling(f"{{0}} * {factor}", PRODUCT, (PRODUCT,))
    return None


def _complex(name: str, dtype: np.dtype[Any]) -> Spelling | None:
    end = suffix(dtype)
    if name in ("add", "subtract", "negative", "where", "equal", "not_equal"):
        return _OPERATORS[name]
    if name == "positive":
        return Spelling("{0}", CHOICE)
    if name in ("multiply", "divide"):
        return Spelling(f"complex_{name}{end}({{0}}, {{1}})", part=f"complex_{name}")
    if name == "square":
        return Spelling(f"complex_square{end}({{0}})", part="complex_square")
    if name == "reciprocal":
        return Spelling(f"complex_reciprocal{end}({{0}})", part="complex_reciprocal")
    if name in ("absolute", "abs"):
        return Spelling(f"cabs{end}({{0}})")
    if name in ("real", "imag"):
        return Spelling(f"c{name}{end}({{0}})")
    if name in _COMPLEX_FUNCTIONS:
        return Spelling(f"{_COMPLEX_FUNCTIONS[name]}{end}({{0}})")
    return None


def cost(name: str, dtype: np.dtype[Any]) -> int:
    """About how many additions an op takes as long as."""
    name = _ALIASES.get(name, name)
    factor = 4 if dtype.kind == "c" else 1
    if name in ("divide", "sqrt", "reciprocal", "fmod", "remainder", "floor_divide"):
        return _DIVISION_COST * factor
    called = name in _VECTOR or name in _VECTOR_PAIRS or name in ("expit", "log_expit", "logit")
    if called or (dtype.kind == "c" and name in _COMPLEX_FUNCTIONS):
        return _FUNCTION_COST * factor
    return factor


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is ``float`` or ``double`` in C."""
    return dtype.name in REALS and real_type(dtype) == dtype
