"""How scalar ops are spelled in Python: on Python floats for speed, and on NumPy scalars for infinities and NaNs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.numpy_literals import dtype_text
from yota.ir.extents import AND, ATOM, CHOICE, COMPARE, NOT, OR, PRODUCT, SUM, UNARY, Spelled
from yota.ir.tape import Op
from yota.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Spelling:
    """An expression with holes.

    text: format string over the operands' texts.
    level: how tightly it binds.
    needs: for each operand, how tightly it must bind to stand there without parentheses.
    repeated: whether operands occur several times, so that they must be names.
    imports: names from ``math`` that it uses, or a module to import as it is.
    raises: whether it can raise where NumPy gives an infinity or NaN.
    warns: whether NumPy may warn in it.
    simd: function of libm to be declared as one that has a vector form.
    part: template of an inline function that it calls.
    """

    text: str
    level: int = ATOM
    needs: tuple[int, ...] = (CHOICE, CHOICE, CHOICE)
    repeated: bool = False
    imports: tuple[str, ...] = ()
    raises: bool = False
    warns: bool = False
    simd: str = ""
    part: str = ""

    @property
    def handles(self) -> tuple[str, int, tuple[int, ...], bool]:
        """What of it shows in the text that is written."""
        return self.text, self.level, self.needs, self.repeated

    def applied(self, texts: Sequence[Spelled], *, apart: bool = False) -> Spelled:
        """The expression of operands; ``apart`` puts in parentheses what compilers of C warn of."""
        if self.text == "{0}":
            return texts[0]
        needs = self.needs if len(self.needs) >= len(texts) else (*self.needs, *self.needs[-1:] * len(texts))
        if apart and CHOICE < self.level < SUM:
            needs = tuple([ATOM if text.level < UNARY else need for text, need in zip(texts, needs, strict=False)])
        pieces = [text if text.level >= need else f"({text})" for text, need in zip(texts, needs, strict=False)]
        signed = len(pieces) if apart and SUM <= self.level < ATOM else 1
        for place in range(0 if self.text[0] == "-" else 1, signed):
            pieces[place] = f"({pieces[place]})" if pieces[place].startswith("-") else pieces[place]
        return Spelled(self.text.format(*pieces), self.level)


def binary(symbol: str, level: int, raises: bool = False) -> Spelling:
    """An operator between its operands."""
    return Spelling(f"{{0}} {symbol} {{1}}", level, (level, level + 1), raises=raises)


def _comparison(symbol: str) -> Spelling:
    # Python reads ``a < b != c`` as ``a < b and b != c``.
    return Spelling(f"{{0}} {symbol} {{1}}", COMPARE, (COMPARE + 1, COMPARE + 1))


def _math(name: str, count: int = 1, raises: bool = True) -> Spelling:
    holes = ", ".join(f"{{{number}}}" for number in range(count))
    return Spelling(f"{name}({holes})", imports=(f"math.{name}",), raises=raises)


def _rounded(text: str, *imports: str) -> Spelling:
    # Python rounds to an int, which has no -0.0 and no infinity: the sign is put back, the rest raises.
    return Spelling(
        f"copysign({text}, {{0}})",
        repeated=True,
        imports=("math.copysign", *(f"math.{name}" for name in imports)),
        raises=True,
    )


_OPERATORS: Mapping[str, Spelling] = {
    "add": binary("+", SUM),
    "subtract": binary("-", SUM),
    "multiply": binary("*", PRODUCT),
    "negative": Spelling("-{0}", UNARY, (UNARY,)),
    "positive": Spelling("{0}", CHOICE, (CHOICE,)),
    "square": Spelling("{0} * {0}", PRODUCT, (ATOM,), repeated=True),
    "less": _comparison("<"),
    "less_equal": _comparison("<="),
    "greater": _comparison(">"),
    "greater_equal": _comparison(">="),
    "equal": _comparison("=="),
    "not_equal": _comparison("!="),
}
"""What Python and NumPy scalars do alike."""

_DECISIONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})

_FLOATS: Mapping[str, Spelling] = {
    "divide": binary("/", PRODUCT, raises=True),
    "reciprocal": Spelling("1.0 / {0}", PRODUCT, (UNARY,), raises=True),
    "floor_divide": binary("//", PRODUCT, raises=True),
    "remainder": binary("%", PRODUCT, raises=True),
    "fmod": _math("fmod", 2),
    "power": _math("pow", 2),
    "where": Spelling("{1} if {0} else {2}", CHOICE, (OR, OR, CHOICE)),
    "absolute": Spelling("abs({0})"),
    "abs": Spelling("abs({0})"),
    "fabs": Spelling("abs({0})"),
    "maximum": Spelling("{0} if {0} > {1} or {0} != {0} else {1}", CHOICE, (ATOM, ATOM), repeated=True),
    "minimum": Spelling("{0} if {0} < {1} or {0} != {0} else {1}", CHOICE, (ATOM, ATOM), repeated=True),
    "fmax": Spelling("{0} if {0} >= {1} or {1} != {1} else {1}", CHOICE, (ATOM, ATOM), repeated=True),
    "fmin": Spelling("{0} if {0} <= {1} or {1} != {1} else {1}", CHOICE, (ATOM, ATOM), repeated=True),
    "sign": Spelling(
        "1.0 if {0} > 0.0 else -1.0 if {0} < 0.0 else 0.0 if {0} == 0.0 else {0}", CHOICE, (ATOM,), repeated=True
    ),
    "floor": _rounded("floor({0})", "floor"),
    "ceil": _rounded("ceil({0})", "ceil"),
    "trunc": _rounded("trunc({0})", "trunc"),
    "rint": _rounded("round({0})"),
    "isnan": Spelling("{0} != {0}", COMPARE, (ATOM,), repeated=True),
    "isinf": _math("isinf", raises=False),
    "isfinite": _math("isfinite", raises=False),
    "signbit": Spelling("copysign(1.0, {0}) < 0.0", COMPARE, imports=("math.copysign",)),
    "copysign": _math("copysign", 2, raises=False),
    "logical_and": Spelling("bool({0}) and bool({1})", AND),
    "logical_or": Spelling("bool({0}) or bool({1})", OR),
    "logical_not": Spelling("not {0}", NOT, (NOT,)),
    "real": Spelling("{0}", CHOICE, (CHOICE,)),
    "conjugate": Spelling("{0}", CHOICE, (CHOICE,)),
    "conj": Spelling("{0}", CHOICE, (CHOICE,)),
    "sqrt": _math("sqrt"),
    "hypot": _math("hypot", 2),
    "arctan2": _math("atan2", 2, raises=False),
    "arctan": _math("atan", raises=False),
    "tanh": _math("tanh", raises=False),
    "arcsin": _math("asin"),
    "arccos": _math("acos"),
    "arcsinh": _math("asinh"),
    "arccosh": _math("acosh"),
    "arctanh": _math("atanh"),
    "deg2rad": _math("radians", raises=False),
    "radians": _math("radians", raises=False),
    "rad2deg": _math("degrees", raises=False),
    "degrees": _math("degrees", raises=False),
    **{name: _math(name) for name in "exp expm1 log log2 log10 log1p sin cos tan sinh cosh".split()},
}
"""Python floats, giving what NumPy gives or raising."""

_SAME_BITS = frozenset(
    "where divide reciprocal floor_divide remainder fmod absolute abs fabs maximum minimum fmax fmin sign floor ceil"
    " trunc rint isnan isinf isfinite signbit copysign logical_and logical_or logical_not real conjugate conj sqrt"
    " power".split()
)
"""Where Python's result has the bits of NumPy's; for powers, of NumPy's ``**`` on scalars."""

_SCALARS: Mapping[str, Spelling] = {
    "divide": binary("/", PRODUCT),
    "floor_divide": binary("//", PRODUCT),
    "remainder": binary("%", PRODUCT),
    "absolute": Spelling("abs({0})"),
    "abs": Spelling("abs({0})"),
    "power": Spelling("{0} ** {1}", UNARY, (ATOM, ATOM)),
    "where": Spelling("np.where({0}, {1}, {2})[()]"),
}
"""NumPy scalars; everything else is a call of the NumPy function."""

_ALIASES = {"mod": "remainder", "true_divide": "divide", "pow": "power"}
MATH_NAMES = frozenset(name.removeprefix("math.") for spelling in _FLOATS.values() for name in spelling.imports) | {
    "inf",
    "nan",
}
"""Names that a body may import from ``math``."""

_CASTS = {"f": "float", "i": "int", "u": "int", "b": "bool"}


def spell(
    op: Op,
    type: TensorType,
    operands: tuple[TensorType, ...],
    *,
    fast: bool,
    exact: bool,
    function: str,
    keywords: tuple[str, ...] = (),
) -> Spelling:
    """How ``op`` is written.

    type, operands: types of its result and of its operands.
    fast: on Python numbers; else on NumPy scalars.
    exact: the result must have NumPy's bits.
    function: text of the function itself, for ops that have no spelling of their own.
    keywords: texts of its static arguments, ``name=value`` each.
    """
    name = _ALIASES.get(op.name, op.name)
    module = (function.rpartition(".")[0],) if function.count(".") > 1 else ()
    if name == "astype":
        return _cast(op.keyword("dtype"), operands[0], fast)
    if name in _OPERATORS and (name in _DECISIONS or type.dtype.kind != "b"):
        return _OPERATORS[name]
    fixed = (text.replace("{", "{{").replace("}", "}}") for text in keywords)
    holes = ", ".join([*(f"{{{number}}}" for number in range(len(op.operands))), *fixed])
    call = Spelling(f"{function}({holes})", imports=module, warns=True)
    if not fast:
        return call if name not in _SCALARS or type.weak else _SCALARS[name]
    floats = all(operand.dtype.kind == "f" for operand in operands) or name.startswith("logical")
    floats = floats or name in ("absolute", "abs", "where") or (name == "power" and type.dtype.kind == "f")
    if name in _FLOATS and floats and (not exact or name in _SAME_BITS):
        return _FLOATS[name]
    if name == "divide":
        return _FLOATS[name]
    cast = _CASTS[type.dtype.kind]
    return Spelling(f"{cast}({function}({holes}))", imports=module, raises=cast == "int", warns=True)


def _cast(dtype: np.dtype[Any], operand: TensorType, fast: bool) -> Spelling:
    if fast:
        if dtype.kind == operand.dtype.kind:
            return Spelling("{0}", CHOICE, (CHOICE,))
        return Spelling(f"{_CASTS[dtype.kind]}({{0}})", raises=dtype.kind == "i")
    if operand.dtype == dtype and not operand.weak:
        return Spelling("{0}", CHOICE, (CHOICE,))
    if operand.dtype.kind == "c" and dtype.kind != "c":
        return Spelling(f"{dtype_text(dtype)}(np.real({{0}}))", warns=True)
    return Spelling(f"{dtype_text(dtype)}({{0}})", warns=True)
