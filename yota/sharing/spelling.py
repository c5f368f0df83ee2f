"""Expressions of rules as Python expressions over another library's functions."""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yota.errors import RuleError
from yota.rules.display import show, walk
from yota.rules.model import Adjoint, Call, Expression, Item, Literal, Name, Rule, Spread
from yota.rules.registry import Registry
from yota.rules.statics import STATIC_FUNCTIONS
from yota.sharing.dialects import Dialect

__all__ = ["MACROS", "SEED", "Spelling", "identifier"]

SEED = "g"
"""What the adjoint of the result is called in exported modules."""
MACROS = ("adjoint", "expand_dims", "phase", "reverse", "rows", "squeeze", "unbroadcast", "unreduce")
"""Macros that exported modules define for themselves."""
_BINARY: Mapping[str, ast.operator] = {
    "add": ast.Add(),
    "subtract": ast.Sub(),
    "multiply": ast.Mult(),
    "divide": ast.Div(),
    "power": ast.Pow(),
    "remainder": ast.Mod(),
    "floor_divide": ast.FloorDiv(),
    "matmul": ast.MatMult(),
}
_COMPARED: Mapping[str, ast.cmpop] = {
    "equal": ast.Eq(),
    "not_equal": ast.NotEq(),
    "less": ast.Lt(),
    "less_equal": ast.LtE(),
    "greater": ast.Gt(),
    "greater_equal": ast.GtE(),
}
_MATH = frozenset("sqrt exp log log2 log10 log1p sin cos tan sinh cosh tanh gamma erf erfc".split())
_TAKEN = frozenset(
    "jax jnp torch anp special math autograd primitive defvjp functools ctx ans d tuple len range abs max min sum int "
    "float complex bool isinstance list None True False".split()
) | {SEED}


def identifier(name: str) -> str:
    """``name`` where it means nothing else in an exported module.

    Examples
    --------
    >>> identifier("x"), identifier("torch"), identifier("_sech")
    ('x', 'torch_', '_sech')
    """
    clash = name in _TAKEN or keyword.iskeyword(name) or keyword.issoftkeyword(name) or name.startswith("__")
    return f"{name.lstrip('_') if name.startswith('__') else name}_" if clash else name


@dataclass(slots=True)
class Spelling:
    """Spells expressions of one rule, and notes what they need.

    Parameters
    ----------
    dialect
        The library.
    rule
        The rule, for messages.
    registry
        Knows the rules of functions that the library lacks.
    functions
        Such functions, by name, in the order in which they were met.
    macros
        Macros that were used.
    """

    dialect: Dialect
    rule: Rule
    registry: Registry
    functions: dict[str, None] = field(default_factory=dict)
    macros: set[str] = field(default_factory=set)
    math: bool = False

    def text(self, expression: Expression) -> str:
        """Python text of ``expression``.

        Raises
        ------
        RuleError
            If the library has no word for a part of it.
        """
        return ast.unparse(ast.fix_missing_locations(ast.Expression(self._tree(expression))))

    def _tree(self, expression: Expression) -> ast.expr:
        if isinstance(expression, Literal):
            return self._literal(expression.value)
        if isinstance(expression, Name):
            return ast.Name(identifier(expression.id))
        if isinstance(expression, Adjoint):
            return ast.Name(SEED)
        if isinstance(expression, (Item, Spread)):
            raise self._refusal(expression, "stands for several arrays")
        return self._call(expression)

    def _literal(self, value: Any) -> ast.expr:
        if isinstance(value, tuple):
            return ast.Tuple([self._literal(each) for each in value])
        if isinstance(value, float):
            for name, number in (("pi", math.pi), ("e", math.e), ("inf", math.inf)):
                if abs(value) == number:
                    self.math = True
                    found: ast.expr = ast.Attribute(ast.Name("math"), name)
                    return ast.UnaryOp(ast.USub(), found) if value < 0 else found
        return ast.Constant(value)

    def _call(self, call: Call) -> ast.expr:
        name = call.function
        if name == "tuple":
            return ast.Tuple([self._tree(argument) for argument in call.arguments])
        if name in ("negative", "positive") and len(call.arguments) == 1:
            sign = ast.USub() if name == "negative" else ast.UAdd()
            return ast.UnaryOp(sign, self._tree(call.arguments[0]))
        if name in _BINARY and len(call.arguments) == 2 and not call.keywords:
            left, right = map(self._tree, call.arguments)
            return ast.BinOp(left, _BINARY[name], right)
        if name in _COMPARED and len(call.arguments) == 2:
            left, right = map(self._tree, call.arguments)
            return ast.Compare(left, [_COMPARED[name]], [right])
        if name in STATIC_FUNCTIONS:
            return self._static(call)
        if name in MACROS:
            self.macros.add(name)
            return self._applied(ast.Name(f"_{name}"), call)
        return self._primitive(call)

    def _static(self, call: Call) -> ast.expr:
        spelled = self.dialect.static.get(call.function)
        if spelled is None or len(call.arguments) != 1:
            raise self._refusal(call, f"uses {call.function}")
        inner = ast.unparse(ast.fix_missing_locations(ast.Expression(self._tree(call.arguments[0]))))
        return ast.parse(spelled.format(inner), mode="eval").body

    def _primitive(self, call: Call) -> ast.expr:
        name = call.function
        constant = not any(isinstance(part, (Name, Adjoint)) for part in walk(call))
        if constant and name in _MATH and not call.keywords:
            self.math = True
            return self._applied(ast.Attribute(ast.Name("math"), name), call)
        spelled = self.dialect.functions.get(name)
        if spelled is not None:
            return self._applied(ast.parse(spelled, mode="eval").body, call, lifted=self.dialect.lifted)
        rules = self.registry.rules(name) if self.registry.knows(name) else ()
        if len(rules) == 1 and rules[0].primal and not any(each.variadic for each in rules[0].operands):
            self.functions[name] = None
            return self._applied(ast.Name(identifier(name)), call)
        raise self._refusal(call, f"uses {name}, for which {self.dialect.name} has no function")

    def _applied(self, function: ast.expr, call: Call, *, lifted: bool = False) -> ast.expr:
        arguments = [self._tree(argument) for argument in call.arguments]
        if lifted and call.function not in ("where", "sum", "reshape", "broadcast_to"):
            arguments = [self._lifted(each, tree) for each, tree in zip(call.arguments, arguments, strict=True)]
        words = self.dialect.keywords if call.function not in (*MACROS, *self.functions) else {}
        keywords = [ast.keyword(words.get(name, name), self._tree(argument)) for name, argument in call.keywords]
        return ast.Call(function, arguments, keywords)

    def _lifted(self, argument: Expression, tree: ast.expr) -> ast.expr:
        """A number as an array, where the library's function takes no plain numbers."""
        if any(isinstance(part, (Name, Adjoint)) for part in walk(argument)):
            return tree
        self.macros.add("tensor")
        return ast.Call(ast.Name("_tensor"), [tree], [])

    def _refusal(self, part: Expression, why: str) -> RuleError:
        return RuleError(
            f"{self.rule.file}:{self.rule.line}: the rule of {self.rule.name} cannot be exported to "
            f"{self.dialect.name}: `{show(part)[:60]}` {why}\n"
            f"write: the part by functions that {self.dialect.name} has, or a rule with a primal for it"
        )
