"""Names of primitives in JAX, PyTorch and autograd, and expressions of rules printed with them."""

from __future__ import annotations

import ast
import configparser
import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yota.emit.render import template_text
from yota.errors import RuleError
from yota.ir.primitive import BINARY
from yota.rules.language.model import Adjoint, Call, Expression, Item, Literal, Name, Rule, Spread
from yota.rules.language.rule_text import show, walk
from yota.rules.language.statics import STATIC_FUNCTIONS
from yota.rules.registry import Registry


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of rules in one library, from its table among the templates.

    name: the library, and its template.
    keywords: keywords with another name.
    lifted: whether the arguments of functions must be arrays, not Python numbers.
    static: spelling of static functions; ``{0}`` is their argument.
    imports: names that a module may need, with their import statements.
    """

    name: str
    functions: Mapping[str, str]
    static: Mapping[str, str]
    imports: Mapping[str, str]
    keywords: Mapping[str, str]
    lifted: bool


LIBRARIES = ("jax", "torch", "autograd")


def dialect_of(library: str) -> Dialect:
    """The spelling of rules in a library."""
    table = configparser.RawConfigParser(delimiters="=")
    table.read_string(template_text(f"sharing/{library}.ini"))
    alike = {name: f"{module}.{name}" for module, names in table.items("modules") for name in names.split()}
    functions, static, imports, keywords = (
        dict(table[each]) for each in ("functions", "static", "imports", "keywords")
    )
    return Dialect(library, alike | functions, static, imports, keywords, table.getboolean("library", "lifted"))


SEED = "g"
"""Name of the adjoint of the result in exported modules."""
MACROS = (
    "adjoint branch contraction expand_dims extent inverse layer phase reverse rows section shapes squeeze unbroadcast "
    "unreduce"
).split()
"""Macros and static functions that exported modules define."""
FIXED = ("tensor", "tangent", "cotangent", "pulled")
"""Functions that all exported modules have, with a leading underscore."""
_JOINED = ("concatenate", "stack")
"""Functions that take arrays as one sequence."""
_MATH = frozenset("sqrt exp log log2 log10 log1p sin cos tan sinh cosh tanh gamma erf erfc".split())
_TAKEN = frozenset(
    "jax jnp torch anp special math autograd primitive defvjp functools ctx ans d tuple len range abs max min sum int "
    "float complex bool isinstance list zip None True False map argnum args by_item static output residuals "
    "primals tangents self pulled inputs".split()
) | {SEED}


def identifier(name: str) -> str:
    """``name``, changed if it has another meaning in an exported module.

    >>> identifier("x"), identifier("torch"), identifier("_sech")
    ('x', 'torch_', '_sech')
    """
    clash = name in _TAKEN or keyword.iskeyword(name) or keyword.issoftkeyword(name) or name.startswith("__")
    return f"{name.lstrip('_') if name.startswith('__') else name}_" if clash else name


@dataclass(slots=True)
class Speller:
    """Prints expressions of one rule, and records the functions that they need.

    registry: registry with the rules of functions that the library lacks.
    functions: such functions, by name, in order of first use.
    """

    dialect: Dialect
    rule: Rule
    registry: Registry
    functions: dict[str, None] = field(default_factory=dict)
    macros: set[str] = field(default_factory=set)
    math: bool = False

    locals: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Choose unique local names that hide no function of the rule."""
        rule = self.rule
        written = (*rule.primal.values(), *rule.partials.values(), *rule.adjoints.values())
        called = {part.function for each in written for part in walk(each) if isinstance(part, Call)}
        taken = {name.strip("_") for name in (rule.name, *called, *FIXED)}
        self.locals = {}
        for name in (*(each.name for each in rule.parameters), *rule.results, *([rule.loop] if rule.loop else [])):
            self._choose(name, identifier(name), taken)
        if len(rule.results) > 1:
            for result in rule.results:
                self._choose(f"d[{result}]", f"{SEED}_{result}", taken)

    def _choose(self, name: str, spelled: str, taken: set[str]) -> None:
        while (spelled.strip("_") in taken and not spelled.endswith("_")) or spelled in self.locals.values():
            spelled += "_"
        self.locals[name] = spelled

    def local(self, name: str) -> str:
        """The name of a parameter, of a result, or of the index of a variadic parameter."""
        return self.locals[name]

    def seed(self, result: str) -> str:
        """The name of the adjoint of ``result``; a single result has a fixed name."""
        return self.locals.get(f"d[{result}]", SEED)

    def text(self, expression: Expression) -> str:
        """Python text of ``expression``."""
        return ast.unparse(ast.fix_missing_locations(ast.Expression(self._tree(expression))))

    def _tree(self, expression: Expression) -> ast.expr:
        if isinstance(expression, Literal):
            return self._literal(expression.value)
        if isinstance(expression, Name):
            return ast.Name(self.local(expression.id))
        if isinstance(expression, Adjoint):
            return ast.Name(self.seed(expression.of))
        if isinstance(expression, Item):
            return ast.Subscript(ast.Name(self.local(expression.name)), ast.Name(self.local(expression.index)))
        if isinstance(expression, Spread):
            return ast.Starred(ast.Name(self.local(expression.name)))
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
        if name in BINARY and len(call.arguments) == 2 and not call.keywords:
            (left, right), node = map(self._tree, call.arguments), BINARY[name].node()
            return ast.Compare(left, [node], [right]) if isinstance(node, ast.cmpop) else ast.BinOp(left, node, right)
        if name in ("item", "getitem") and len(call.arguments) == 1:
            # One of several results, or a part of an array: both are indexed.
            return ast.Subscript(self._tree(call.arguments[0]), self._tree(dict(call.keywords)["index"]))
        if name in MACROS:
            self.macros.add(name)
            return self._applied(ast.Name(f"_{name}"), call)
        if name in STATIC_FUNCTIONS:
            return self._static(call)
        return self._primitive(call)

    def _static(self, call: Call) -> ast.expr:
        spelled = self.dialect.static.get(call.function)
        if spelled is None or len(call.arguments) != 1:
            raise self._refusal(call, f"uses {call.function}")
        inner = ast.unparse(ast.fix_missing_locations(ast.Expression(self._tree(call.arguments[0]))))
        return ast.parse(spelled.format(inner), mode="eval").body

    def _primitive(self, call: Call) -> ast.expr:
        name = call.function
        constant = not any(isinstance(part, (Name, Adjoint, Item, Spread)) for part in walk(call))
        if constant and name in _MATH and not call.keywords:
            self.math = True
            return self._applied(ast.Attribute(ast.Name("math"), name), call)
        spelled = self.dialect.functions.get(name)
        if spelled is not None:
            return self._applied(ast.parse(spelled, mode="eval").body, call, lifted=self.dialect.lifted)
        rules = self.registry.rules(name) if self.registry.knows(name) else ()
        if len(rules) == 1 and rules[0].primal:
            self.functions[name] = None
            return self._applied(ast.Name(identifier(name)), call)
        raise self._refusal(call, f"uses {name}, for which {self.dialect.name} has no function")

    def _applied(self, function: ast.expr, call: Call, *, lifted: bool = False) -> ast.expr:
        arguments = [self._tree(argument) for argument in call.arguments]
        if lifted and call.function not in ("where", "sum", "reshape", "broadcast_to"):
            arguments = [self._lifted(each, tree) for each, tree in zip(call.arguments, arguments, strict=True)]
        words = self.dialect.keywords if call.function not in (*MACROS, *self.functions) else {}
        keywords = [ast.keyword(words.get(name, name), self._tree(argument)) for name, argument in call.keywords]
        if call.function in _JOINED:
            arguments = [_sequence(arguments)]
        if call.function == "einsum":
            arguments = [*(each.value for each in keywords), *arguments]
            keywords = []
        return ast.Call(function, arguments, keywords)

    def _lifted(self, argument: Expression, tree: ast.expr) -> ast.expr:
        """A number as an array, if the library's function refuses Python numbers."""
        if any(isinstance(part, (Name, Adjoint, Item, Spread)) for part in walk(argument)):
            return tree
        self.macros.add("tensor")
        return ast.Call(ast.Name("_tensor"), [tree], [])

    def _refusal(self, part: Expression, why: str) -> RuleError:
        return RuleError(
            f"{self.rule.file}:{self.rule.line}: the rule of {self.rule.name} cannot be exported to "
            f"{self.dialect.name}: `{show(part)[:60]}` {why}\n"
            f"write: the part by functions that {self.dialect.name} has, or a rule with a primal for it"
        )


def _sequence(arguments: list[ast.expr]) -> ast.expr:
    """Arrays as one argument; those of a variadic parameter are already a tuple."""
    alone = arguments[0] if len(arguments) == 1 else None
    return alone.value if isinstance(alone, ast.Starred) else ast.Tuple(arguments)
