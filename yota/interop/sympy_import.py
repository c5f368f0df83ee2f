"""Converts sympy expressions to programs of primitives."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partialmethod
from typing import Any

import sympy

from yota.errors import ArgumentError, RuleError
from yota.interop.expression_files import read_text
from yota.interop.expression_steps import BY_HAND, CHAINS, FORMS, MOST_POWER, ORDERED, Steps, primitives_by_name
from yota.interop.programs import Argument, Program
from yota.rules.algebras.readback import Reader
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.registry import registry

_KEYWORDS = frozenset(keyword.kwlist)
_MOST_WRITTEN = 32
"""Largest number of terms of a sum that become terms of the program."""
_DOUBLE = 53
"""Bits of a double's significand."""
_DIGITS = 30
"""Digits of a product of numbers, which is then rounded to a double."""


class ProgramReader(Steps, Reader):
    """Converts sympy expressions to steps."""

    def __init__(self, names: Mapping[Any, str], functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.names = dict(names)
        self.functions = functions
        self.implementations: dict[str, Callable[..., Any]] = {}
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
        if number in self.constants:
            return self.constants[number]
        if number is sympy.nan or (number.is_extended_real and not number.is_finite):
            return Literal(float(number))
        if number.is_Float and number._prec < _DOUBLE:
            # The decimal digits, as code of sympy's has them.
            return Literal(float(str(number)))
        return super()._literal(number)

    def _product(self, expression: Any) -> Expression:
        """A product. Its numbers are one, as in sympy's code: a division takes more time than a product."""
        numbers = [each for each in expression.args if each.is_Rational or each.is_NumberSymbol]
        several = any(each.is_NumberSymbol for each in numbers[1:]) or any(not each.is_Integer for each in numbers[:1])
        if several and len(numbers) < len(expression.args) and not self.constants.keys() & set(numbers):
            rest = (each for each in expression.args if each not in numbers)
            expression = sympy.Mul(sympy.Mul(*numbers).evalf(_DIGITS), *rest, evaluate=False)
        return super()._product(expression)

    def _power(self, expression: Any) -> Expression:
        root = "sqrt" in self.functions and expression.exp == sympy.S.Half
        return self._implemented("sqrt", [self.read(expression.base)]) if root else super()._power(expression)

    def _implemented(self, name: str, parts: Iterable[Expression], own: Callable[..., Any] | None = None) -> Expression:
        """A call of a function that has no rule, by a name that no primitive has."""
        self.implementations[f"{name}()"] = own or self.functions[name]
        return self.call(f"{name}()", *parts)

    def named(self, name: str, parts: Sequence[Expression], *, whole: bool = False) -> Expression | None:
        """A function by its name, of the given ones or of sympy's."""
        if name in self.functions:
            return self._implemented(name, parts)
        return super().named(name, parts, whole=whole)

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
        if not kind.__module__.startswith("sympy.") and expression.is_Function:
            return self._AppliedUndef(expression)
        known = any(name in each for each in (self.functions, CHAINS, FORMS, BY_HAND, primitives_by_name()))
        found = None
        if known:
            parts = [*map(self.read, expression.args)]
            whole = name in ORDERED and bool(expression.args[0].is_integer)
            if whole:
                self._counted(expression.args[0])
            found = self.named(name, parts, whole=whole)
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
        parts = [*map(self.read, expression.args)]
        own = getattr(expression.func, "_imp_", None)
        if name in self.functions or own is not None:
            return self._implemented(name, parts, None if name in self.functions else own)
        known = registry()
        if not known.knows(name) or known.rules(name)[0].kind == "tensor":
            raise ArgumentError(
                f"the function {name} has neither an implementation nor a rule; give it one: yota.diffrule(...),\n"
                f"    from_sympy(..., functions={{{name!r}: f}}) or sympy's implemented_function"
            )
        return self.call(name, *parts)

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
        if function == "sum" and not inner and low.is_Integer and high.is_Integer and 0 <= high - low < _MOST_WRITTEN:
            # The powers of a symbol are products, where those by an array of exponents are not.
            terms = () if body.has(sympy.Indexed, sympy.MatrixExpr) else range(int(low), int(high) + 1)
            written = sympy.Add(*(body.subs(symbol, each) for each in terms))
            if terms and body.has(symbol) and not written.has(sympy.zoo, sympy.nan):
                return self.read(written)
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
        if not exponent.is_Integer or not 0 < abs(exponent) <= MOST_POWER:
            raise self._refusal(expression)
        inner = self.read(base)
        inner = self.call("inv", inner) if exponent < 0 else inner
        return self.folded("matmul", [inner] * abs(int(exponent)))

    def _Identity(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("eye", self._counted(expression.rows))

    def _ZeroMatrix(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("zeros", *map(self._counted, expression.shape))

    def _MatrixBase(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("matrix_of_numbers", *self._cells(expression), shape=tuple(expression.shape))

    def _OneMatrix(self, expression: Any) -> Expression:  # noqa: N802
        return self.call("ones", *map(self._counted, expression.shape))

    def _BlockMatrix(self, expression: Any) -> Expression:  # noqa: N802
        blocks = expression.blocks
        return self.call("block", *map(self.read, blocks.flat()), columns=blocks.cols)

    def _MatrixSlice(self, expression: Any) -> Expression:  # noqa: N802
        slices = (expression.rowslice, expression.colslice)
        if not all(each.is_Integer for each in sympy.flatten(slices)):
            raise self._refusal(expression)
        rows, columns = (tuple(map(int, each)) for each in slices)
        return self.call("part", self.read(expression.parent), rows=rows, columns=columns)

    def _FunctionMatrix(self, expression: Any) -> Expression:  # noqa: N802
        if not all(each.is_Integer for each in expression.shape):
            raise self._refusal(expression)
        return self.read(expression.as_explicit())

    def _ElementwiseApplyFunction(self, expression: Any) -> Expression:  # noqa: N802
        symbol, inner = sympy.Dummy(), self.read(expression.expr)
        assert isinstance(inner, Name)
        self.names[symbol] = inner.id
        return self.read(expression.function(symbol))

    def _Derivative(self, expression: Any) -> Expression:  # noqa: N802
        done = expression.doit()
        if done == expression:
            raise self._refusal(expression)
        return self.read(done)

    _Subs = _DotProduct = _UnevaluatedExpr = _Derivative

    def _text(self, text: str) -> Expression:
        found, symbols, counted = read_text(text, self, frozenset(self.names.values()))
        known = {name: str(symbol) for symbol, name in self.names.items()}
        for name in symbols:
            if known.get(name) != name:
                self.symbol(sympy.Symbol(name))
        self.counted |= counted
        return found

    def _cells(self, expression: Any) -> tuple[Expression, ...]:
        return tuple(self.read(sympy.sympify(each)) for each in sympy.flatten(expression))

    def result(self, expression: Any) -> Expression:
        """A result, possibly a structure."""
        if isinstance(expression, (list, tuple, sympy.Tuple)):
            kind = "list" if isinstance(expression, list) else "tuple"
            return Call(kind, tuple(map(self.result, expression)))
        if isinstance(expression, (sympy.MatrixBase, sympy.NDimArray)):
            return Call("matrix", self._cells(expression), (("shape", Literal(tuple(expression.shape))),))
        if isinstance(expression, str):
            return self._text(expression)
        if isinstance(expression, (dict, set)) or not isinstance(expression, (sympy.Basic, int, float, complex)):
            raise ArgumentError(
                f"{expression!r:.60} is a {type(expression).__name__}; pass expressions of sympy's, or lists, "
                "tuples or matrices of them"
            )
        return self.read(sympy.sympify(expression))


_READ = frozenset(name for name in vars(ProgramReader) if name.startswith("_") and not name.startswith("__"))


def program(
    expressions: Any,
    symbols: Any,
    name: str,
    functions: Mapping[str, Callable[..., Any]],
    constants: Mapping[Any, Literal] | None = None,
) -> tuple[Program, tuple[tuple[str, Callable[..., Any]], ...]]:
    """The program of expressions, with their functions by name; some ``constants`` have other values than sympy's."""
    names: dict[Any, str] = {}
    symbols = [each.strip() for each in symbols.split(",")] if isinstance(symbols, str) else symbols
    given = symbols if isinstance(symbols, (list, tuple, sympy.Tuple)) else (symbols,)
    arguments = [_argument(each, place, names) for place, each in enumerate(given)]
    reader = ProgramReader(names, functions)
    reader.constants = constants or {}
    try:
        result = reader.result(expressions)
    except RecursionError:
        raise ArgumentError("the expression is nested too deeply; name its parts by sympy.cse") from None
    except RuleError as fault:
        raise ArgumentError(str(fault)) from None
    arguments = [_with_kinds(each, reader.counted) for each in arguments]
    return Program(name, tuple(arguments), tuple(reader.steps), result), tuple(reader.implementations.items())


def _argument(given: Any, place: int, names: dict[Any, str]) -> Argument:
    """An argument, whose symbols are added to ``names``."""
    if isinstance(given, sympy.MatrixBase):
        parts = tuple(_argument(each, number, names) for number, each in enumerate(sympy.flatten(given)))
        return Argument(f"arg{place}", parts, tuple(given.shape))
    if isinstance(given, (list, tuple, sympy.Tuple)):
        return Argument(f"arg{place}", tuple(_argument(each, number, names) for number, each in enumerate(given)))
    whole = isinstance(given, (sympy.IndexedBase, sympy.MatrixSymbol))
    atom = isinstance(given, sympy.Expr) and given.is_Atom and not given.is_number
    if not (whole or atom or isinstance(given, (str, sympy.Idx, sympy.Function, sympy.Derivative))):
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
