"""Converts sympy expressions to programs of primitives."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partialmethod
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from yota.errors import ArgumentError, RuleError
from yota.interop.programs import Argument, Program
from yota.rules.algebras.readback import Reader
from yota.rules.algebras.sympy_functions import functions
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.rule_text import walk
from yota.rules.language.syntax import read_expression
from yota.rules.registry import registry

FORMS: Mapping[str, str] = dict(
    line.split(" = ", 1)
    for line in """
sec = 1 / cos(a)
csc = 1 / sin(a)
cot = 1 / tan(a)
sech = 1 / cosh(a)
csch = 1 / sinh(a)
coth = 1 / tanh(a)
asec = arccos(1 / a)
acsc = arcsin(1 / a)
acot = arctan(1 / a)
asech = arccosh(1 / a)
acsch = arcsinh(1 / a)
acoth = arctanh(1 / a)
sinc = sinc(a / pi)
arg = arctan2(imag(a), real(a))
re = real(a)
im = imag(a)
conjugate = conjugate(a)
Abs = absolute(a)
floor = floor(a)
ceiling = ceil(a)
frac = a - floor(a)
Mod = remainder(a, b)
Heaviside = heaviside(a, b)
KroneckerDelta = where(equal(a, b), 1.0, 0.0)
ITE = where(a, b, c)
Not = logical_not(a)
Equality = equal(a, b)
Unequality = not_equal(a, b)
StrictLessThan = less(a, b)
LessThan = less_equal(a, b)
StrictGreaterThan = greater(a, b)
GreaterThan = greater_equal(a, b)
expm1 = expm1(a)
log1p = log1p(a)
exp2 = exp2(a)
log2 = log2(a)
log10 = log10(a)
hypot = hypot(a, b)
fma = a * b + c
logaddexp = logaddexp(a, b)
factorial = gamma(a + 1)
harmonic = psi(a + 1) + 0.5772156649015329
binomial = binom(a, b)
RisingFactorial = poch(a, b)
FallingFactorial = poch(a - b + 1, b)
beta = beta(a, b)
betainc_regularized = betainc(a, b, d) - betainc(a, b, c)
betainc = (betainc(a, b, d) - betainc(a, b, c)) * beta(a, b)
uppergamma = gammaincc(a, b) * gamma(a)
lowergamma = gammainc(a, b) * gamma(a)
erf2 = erf(b) - erf(a)
erfcinv = erfcinv(a)
Ei = expi(a)
li = expi(log(a))
Si = item(sici(a), index=0)
Ci = item(sici(a), index=1)
Shi = item(shichi(a), index=0)
Chi = item(shichi(a), index=1)
fresnels = item(fresnel(a), index=0)
fresnelc = item(fresnel(a), index=1)
airyai = item(airy(a), index=0)
airyaiprime = item(airy(a), index=1)
airybi = item(airy(a), index=2)
airybiprime = item(airy(a), index=3)
LambertW = where(a >= -1 / E, real(lambertw(a)), log(-1.0))
jn = spherical_jn(a, b)
yn = spherical_yn(a, b)
elliptic_k = ellipk(a)
elliptic_f = ellipkinc(a, b)
legendre = eval_legendre(a, b)
chebyshevt = eval_chebyt(a, b)
chebyshevu = eval_chebyu(a, b)
hermite = eval_hermite(a, b)
hermite_prob = eval_hermitenorm(a, b)
laguerre = eval_laguerre(a, b)
assoc_laguerre = eval_genlaguerre(a, b, c)
gegenbauer = eval_gegenbauer(a, b, c)
jacobi = eval_jacobi(a, b, c, d)
expint = expn(a, b)
Transpose = transposed(a)
Trace = trace(a)
Determinant = det(a)
Inverse = inv(a)
""".strip().split("\n")
)
"""Sympy functions and conditions of arguments a, b, c and d in the rule language, in addition to `functions`."""
_ORDERED = frozenset(
    "expint jn yn legendre chebyshevt chebyshevu hermite hermite_prob laguerre assoc_laguerre gegenbauer jacobi".split()
)
"""Functions whose first argument is an integer."""
CHAINS = {"Max": "maximum", "Min": "minimum", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"} | {
    "MatAdd": "add",
    "HadamardProduct": "multiply",
}
_MOST_POWER = 64
_KEYWORDS = frozenset(keyword.kwlist)


@cache
def form(name: str) -> Expression | None:
    """The form of a sympy function in the rule language, unless it is a primitive of another name."""
    text = FORMS.get(name)
    return None if text is None else read_expression(text, frozenset("abcd"))


@cache
def _primitives_by_name() -> Mapping[str, str]:
    """Names of primitives by equivalent sympy functions."""
    found = functions().items()
    return {made.__name__: name for name, made in found if isinstance(made, type) and registry().knows(name)}


class Steps:
    """Steps of a program; equal steps are shared."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Call]] = []
        self._calls: dict[Any, Name] = {}
        self._depth = 0

    def call(self, function: str, *arguments: Expression, **keywords: Any) -> Name:
        """A new step, or an existing equal one."""
        call = Call(function, arguments, tuple((name, Literal(each)) for name, each in keywords.items()))
        if call not in self._calls:
            name = f"{len(self.steps)}"
            self.steps.append((name, call))
            self._calls[call] = Name(name)
        return self._calls[call]

    def folded(self, function: str, parts: Iterable[Expression]) -> Expression:
        """A chain of calls from the left."""
        first, *rest = parts
        for each in rest:
            first = self.call(function, first, each)
        return first

    def named(self, name: str, parts: Sequence[Expression]) -> Expression | None:
        """A sympy function by its name; None if there is none with this number of arguments."""
        special = getattr(self, f"_{name}", None) if name in _BY_HAND else None
        if special is not None:
            return special(*parts) if len(parts) in _BY_HAND[name] else None
        if name in CHAINS:
            return self.folded(CHAINS[name], parts) if parts else None
        known = form(name)
        if known is None:
            alike = _primitives_by_name().get(name)
            wanted = len(registry().rules(alike)[0].operands) if alike else -1
            return self.call(alike, *parts) if alike and len(parts) == wanted else None
        count = len({each.id for each in walk(known) if isinstance(each, Name)})
        whole = isinstance(parts[0], Literal) and isinstance(parts[0].value, int) if parts else False
        if count != len(parts) or (name in _ORDERED and not whole):
            return None
        return self._written(known, dict(zip("abcd", parts, strict=False)))

    def _written(self, form: Expression, names: Mapping[str, Expression]) -> Expression:
        if isinstance(form, Name):
            return names[form.id]
        if not isinstance(form, Call):
            return form
        keywords = {name: each.value for name, each in form.keywords}  # type: ignore[union-attr]
        return self.call(form.function, *(self._written(each, names) for each in form.arguments), **keywords)

    def index(self, low: Expression, high: Expression) -> Name:
        """All values of an index; steps until `over` are inside its sum."""
        self._depth += 1
        return self.call("index", low, high, depth=self._depth - 1)

    def over(self, body: Expression, index: Name, function: str) -> Name:
        """The sum or product of a body over the last index."""
        self._depth -= 1
        return self.call("over", body, index, by=function)

    # -- functions that no form says ---------------------------------------------------------------------

    def _sqrt(self, x: Expression) -> Expression:
        return self.call("sqrt", x)

    def _Rational(self, above: Expression, below: Expression) -> Expression:  # noqa: N802
        return self.call("divide", above, below)

    def _polygamma(self, order: Expression, x: Expression) -> Expression | None:
        value = order.value if isinstance(order, Literal) else None
        if not isinstance(value, int) or not 0 <= value <= _MOST_POWER:
            return None
        if value == 0:
            return self.call("psi", x)
        factor = Literal(float((-1) ** (value + 1) * math.factorial(value)))
        return self.call("multiply", factor, self.call("zeta", Literal(value + 1), x))

    def _zeta(self, s: Expression, x: Expression | None = None) -> Expression:
        return self.call("riemann", s) if x is None else self.call("zeta", s, x)

    def _elliptic_e(self, *parts: Expression) -> Expression:
        return self.call("ellipe" if len(parts) == 1 else "ellipeinc", *parts)

    def _bessel(self, letter: str, order: Expression, x: Expression) -> Expression:
        whole = order.value if isinstance(order, Literal) else None
        # The functions of order 0 and 1 are faster, and defined on both sides of 0.
        return self.call(f"{letter}{whole}", x) if whole in (0, 1) else self.call(f"{letter}v", order, x)

    _besselj, _bessely = partialmethod(_bessel, "j"), partialmethod(_bessel, "y")
    _besseli, _besselk = partialmethod(_bessel, "i"), partialmethod(_bessel, "k")

    def _log(self, *parts: Expression) -> Expression:
        return self.folded("divide", [self.call("log", each) for each in parts])


_BY_HAND = {
    "sqrt": (1,),
    "Rational": (2,),
    "polygamma": (2,),
    "zeta": (1, 2),
    "elliptic_e": (1, 2),
    "log": (1, 2),
    **dict.fromkeys(("besselj", "bessely", "besseli", "besselk"), (2,)),
}


class ProgramReader(Steps, Reader):
    """Converts sympy expressions to steps."""

    def __init__(self, names: Mapping[Any, str], implementations: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.names = dict(names)
        self.implementations = dict(implementations)
        self.counted: set[str] = set()
        self._known: dict[Any, Expression] = {}

    def read(self, expression: Any) -> Expression:
        """``expression``, as the name of a step or a number."""
        found = self._known.get(expression)
        if found is None:
            # A product of matrices is also a `Mul`, but needs another primitive.
            whole = getattr(expression, "is_MatrixExpr", False)
            found = self._known[expression] = self.other(expression) if whole else super().read(expression)
        return found

    def is_constant(self, expression: Any) -> bool:
        """Whether an expression is the imaginary unit, or a power of a negative number."""
        power = expression.is_Pow and expression.base.is_Number and expression.base.is_negative
        return expression is sympy.I or bool(power and expression.exp.is_Rational and not expression.exp.is_Integer)

    def _literal(self, number: Any) -> Expression:
        if number.is_extended_real and not number.is_finite:
            return Literal(float(number))
        return super()._literal(number)

    def symbol(self, symbol: Any) -> Expression:
        """The name of a symbol."""
        name = self.names.get(symbol, self.names.get(str(symbol)))
        if name is None:
            known = ", ".join(map(str, self.names)) or "none"
            raise ArgumentError(f"the expression has the symbol {symbol}, which is no argument; they are: {known}")
        return Name(name)

    def other(self, expression: Any) -> Expression:
        """Functions, conditions, sums, elements and matrices."""
        if expression in self.names or isinstance(expression, (sympy.Idx, sympy.IndexedBase, sympy.MatrixSymbol)):
            return self.symbol(expression)
        kind = type(expression)
        reader = next(
            (getattr(self, f"_{base.__name__}", None) for base in kind.__mro__ if f"_{base.__name__}" in _READ), None
        )
        if reader is not None:
            return reader(expression)  # type: ignore[no-any-return]
        name = kind.__name__
        known = kind.__module__.startswith("sympy.") and any(
            name in each for each in (CHAINS, FORMS, _BY_HAND, _primitives_by_name())
        )
        found = self.named(name, [*map(self.read, expression.args)]) if known else None
        if found is None:
            raise self._refusal(expression)
        return found

    def _refusal(self, expression: Any) -> ArgumentError:
        name = type(expression).__name__
        return ArgumentError(
            f"sympy's {name} has no function in NumPy or SciPy that yota has a rule for: {str(expression)[:60]}\n"
            f"give one: from_sympy(..., functions={{{name!r}: f}}), or rewrite it: expression.rewrite(...), .doit()"
        )

    # -- sympy's classes, by name ------------------------------------------------------------------------

    def _AppliedUndef(self, expression: Any) -> Expression:  # noqa: N802
        name = expression.func.__name__
        implementation = getattr(expression.func, "_imp_", None)
        if name not in self.implementations and implementation is not None:
            self.implementations[name] = implementation
        if name not in self.implementations:
            known = registry()
            if not known.knows(name) or known.rules(name)[0].kind == "tensor":
                raise ArgumentError(
                    f"the function {name} has neither an implementation nor a rule; give it one: yota.diffrule(...),\n"
                    f"    from_sympy(..., functions={{{name!r}: f}}) or sympy's implemented_function"
                )
        return self.call(name, *map(self.read, expression.args))

    def _ImaginaryUnit(self, expression: Any) -> Expression:  # noqa: N802
        return Literal(1j)

    def _BooleanAtom(self, expression: Any) -> Expression:  # noqa: N802
        return Literal(bool(expression))

    def _Piecewise(self, expression: Any) -> Expression:  # noqa: N802
        found: Expression = Literal(float("nan"))
        for value, condition in reversed(expression.args):
            piece = self.read(value)
            found = piece if condition is sympy.true else self.call("where", self.read(condition), piece, found)
        return found

    def _reduced(self, function: str, expression: Any) -> Expression:
        body, *limits = expression.args
        # The last of several indices is the outermost.
        (symbol, low, high), inner = limits[-1], limits[:-1]
        if not (low.is_finite is not False and high.is_finite is not False):
            raise ArgumentError(f"{expression} has infinitely many terms; give it bounds, or sympy's .doit()")
        outer, names = self._known, dict(self.names)
        index = self.index(self._counted(low), self._counted(high))
        # The same symbol may be another index inside.
        self.names[symbol], self._known = index.id, {}
        found = self.read(type(expression)(body, *inner) if inner else body)
        self.names, self._known = names, outer
        return self.over(found, index, function)

    _Sum, _Product = partialmethod(_reduced, "sum"), partialmethod(_reduced, "prod")

    def _counted(self, expression: Any) -> Expression:
        """An index or a bound, whose symbols are integers."""
        found = (self.names.get(each, self.names.get(str(each))) for each in expression.free_symbols)
        self.counted |= {each for each in found if each is not None}
        return self.read(expression)

    def _element(self, whole: str, expression: Any) -> Expression:
        return self.call("element", self.read(getattr(expression, whole)), *map(self._counted, expression.indices))

    _Indexed, _MatrixElement = partialmethod(_element, "base"), partialmethod(_element, "parent")

    def _MatMul(self, expression: Any) -> Expression:  # noqa: N802
        scalars, matrices = expression.as_coeff_matrices()
        found = self.folded("matmul", map(self.read, matrices))
        return found if scalars == 1 else self.call("multiply", self.read(scalars), found)

    def _MatPow(self, expression: Any) -> Expression:  # noqa: N802
        base, exponent = expression.args
        if not exponent.is_Integer or not 0 < abs(exponent) <= _MOST_POWER:
            raise self._refusal(expression)
        inner = self.read(base)
        inner = self.call("inv", inner) if exponent < 0 else inner
        return self.folded("matmul", [inner] * abs(int(exponent)))

    def _Identity(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("eye", self._counted(expression.rows))

    def _ZeroMatrix(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("zeros", *map(self._counted, expression.shape))

    def _Derivative(self, expression: Any) -> Expression:  # noqa: N802
        done = expression.doit()
        if done == expression:
            raise self._refusal(expression)
        return self.read(done)

    def result(self, expression: Any) -> Expression:
        """A result, possibly a structure."""
        if isinstance(expression, (list, tuple, sympy.Tuple)):
            kind = "list" if isinstance(expression, list) else "tuple"
            return Call(kind, tuple(map(self.result, expression)))
        if isinstance(expression, (sympy.MatrixBase, sympy.NDimArray)):
            parts = tuple(self.read(sympy.sympify(each)) for each in sympy.flatten(expression))
            return Call("matrix", parts, (("shape", Literal(tuple(expression.shape))),))
        if isinstance(expression, (dict, set, str)) or not isinstance(expression, (sympy.Basic, int, float, complex)):
            raise ArgumentError(
                f"{expression!r:.60} is a {type(expression).__name__}; pass expressions of sympy's, or lists, "
                "tuples or matrices of them"
            )
        return self.read(sympy.sympify(expression))


_READ = frozenset(name for name in vars(ProgramReader) if name.startswith("_") and not name.startswith("__"))


def program(
    expressions: Any, symbols: Any, name: str, functions: Mapping[str, Callable[..., Any]]
) -> tuple[Program, tuple[tuple[str, Callable[..., Any]], ...]]:
    """The program of expressions, with their functions by name.

    Raises ArgumentError if they contain an unknown function or symbol.
    """
    names: dict[Any, str] = {}
    symbols = [each.strip() for each in symbols.split(",")] if isinstance(symbols, str) else symbols
    given = symbols if isinstance(symbols, (list, tuple, sympy.Tuple)) else (symbols,)
    arguments = [_argument(each, place, names) for place, each in enumerate(given)]
    reader = ProgramReader(names, functions)
    try:
        result = reader.result(expressions)
    except RecursionError:
        raise ArgumentError("the expression is nested too deeply; name its parts by sympy.cse") from None
    except RuleError as fault:
        raise ArgumentError(str(fault)) from None
    arguments = [_with_kinds(each, reader.counted) for each in arguments]
    used = {call.function for _, call in reader.steps}
    pairs = tuple((each, f) for each, f in reader.implementations.items() if each in used)
    return Program(name, tuple(arguments), tuple(reader.steps), result), pairs


def _argument(given: Any, place: int, names: dict[Any, str]) -> Argument:
    """An argument, whose symbols are added to ``names``."""
    if isinstance(given, sympy.MatrixBase):
        parts = tuple(_argument(each, number, names) for number, each in enumerate(sympy.flatten(given)))
        return Argument(f"arg{place}", parts, tuple(given.shape))
    if isinstance(given, (list, tuple, sympy.Tuple)):
        return Argument(f"arg{place}", tuple(_argument(each, number, names) for number, each in enumerate(given)))
    whole = isinstance(given, (sympy.IndexedBase, sympy.MatrixSymbol))
    if not (whole or isinstance(given, (str, sympy.Symbol, sympy.Idx, AppliedUndef, sympy.Derivative))):
        raise ArgumentError(f"{given!r:.60} is no symbol; the arguments are symbols, and lists or matrices of them")
    if given in names:
        raise ArgumentError(f"the symbol {given} is an argument twice")
    names[given] = _identifier(str(given), names.values())
    if isinstance(given, sympy.IndexedBase):
        names[given.label] = names[given]
    return Argument(names[given], kind="array" if whole else "number")


def _identifier(text: str, taken: Iterable[str]) -> str:
    """A valid parameter name similar to ``text``."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
    name = f"x{name}" if name[0].isdigit() else name
    known = set(taken)
    while name in known or not name.isidentifier() or name in _KEYWORDS:
        name += "_"
    return name


def _with_kinds(argument: Argument, counted: set[str]) -> Argument:
    parts = tuple(_with_kinds(each, counted) for each in argument.parts)
    kind = "integer" if argument.name in counted and argument.kind == "number" else argument.kind
    return Argument(argument.name, parts, argument.shape, kind)
