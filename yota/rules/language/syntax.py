"""Reads a rule text into rules, by Python's own parser; nothing of it is ever executed."""

from __future__ import annotations

import ast
import itertools
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from yota.errors import RuleError
from yota.rules.language.expressions import CONSTANTS, ExpressionReader, Scope
from yota.rules.language.model import Call, Expression, Literal, Parameter, Rule, is_zero
from yota.rules.language.rule_head import read_decorator, read_parameters, read_results
from yota.rules.language.rule_text import Place, Source

_Key = TypeVar("_Key", str, tuple[str, str])

HEADER = "# yota rules 1"
"""First line of every rule file."""
_LIBRARIES = ("numpy.", "scipy.")
"""Functions that are what the library says, whatever else a rule writes."""
_UNKNOWN = "its rule is @linear and gives no adjoint by this operand"
"""Why there is no derivative by an operand of a ``@linear`` function."""


def parse(
    text: str, file: str = "<diffrule>", *, header: bool = False, first: int = 1
) -> tuple[Source, tuple[Rule, ...]]:
    """The rules of ``text``, with the source that knows where each part stands.

    file: name to show in errors.
    header: whether the first line must be ``# yota rules 1``.
    first: line of the file on which the text begins.
    Raises RuleError if ``text`` is not in the rule language. Whether what it says makes sense is for `yota.rules.laws`.

    >>> _, (rule,) = parse("@nodiff('m.f')" + chr(10) + "def f(x: Real) -> y: ...")
    >>> rule.name, rule.target, rule.results
    ('f', 'm.f', ('y',))
    """
    source = Source(text if header else textwrap.dedent(text), file, first)
    if header and source.lines[0].rstrip() != HEADER:
        raise source.fault(
            Place(1, 1),
            "the first line of a rule file names the version of the language",
            found=source.lines[0][:60] or "an empty line",
            write=HEADER,
        )
    try:
        tree = _parse(source)
        return source, tuple(_definitions(source, tree))
    except (RecursionError, MemoryError):
        what, write = "the rule text is nested too deeply", "a second function for a part of it"
        raise source.fault(Place(1, 1), what, found=source.lines[0][:60], write=write) from None


def parse_all(text: str, file: str) -> tuple[Source, tuple[Rule, ...], tuple[RuleError, ...]]:
    """The rules of a file that can be read, and the faults of all the others."""
    source = Source(text, file)
    faults: list[RuleError] = []
    try:
        return (*parse(text, file, header=True), ())
    except RuleError as fault:
        faults.append(fault)
    found: list[Rule] = []
    rest: list[RuleError] = []
    for piece in _pieces(source.lines):
        try:
            found += _definitions(source, _parse(source, piece))
        except RuleError as fault:
            rest.append(fault)
        except (RecursionError, MemoryError):
            continue
    # A fault that no piece has on its own, such as a missing first line, is one of the whole.
    return source, tuple(found), tuple(rest or faults)


def _pieces(lines: list[str]) -> Iterator[str]:
    """Texts with one rule each, at the lines where the rule stands."""
    starts = [number for number, line in enumerate(lines) if line.startswith("@")]
    for first, last in itertools.pairwise([*starts, len(lines)]):
        yield "\n" * first + "\n".join(lines[first:last])


def read_expression(text: str, names: frozenset[str] = frozenset()) -> Expression:
    """``text`` as one expression over ``names``.

    >>> read_expression("2 * x", frozenset("x"))
    Call(function='multiply', arguments=(Literal(value=2), Name(id='x')), keywords=())
    """
    source = Source(text, "<expression>")
    statements = _parse(source).body
    if len(statements) != 1 or not isinstance(statements[0], ast.Expr):
        raise source.fault(Place(1, 1), "this is not one expression", found=text[:60], write="2 * x")
    return ExpressionReader(source, Scope(names)).read(statements[0].value)


def _parse(source: Source, text: str | None = None) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text if text is None else text, source.file)
    except SyntaxError as fault:
        place = Place(min(max(fault.lineno or 1, 1), len(source.lines)), max(fault.offset or 1, 1))
        raise source.fault(
            place, "this is not Python's syntax", found=str(fault.msg), write="a rule as in rules/README.md"
        ) from None
    except (ValueError, RecursionError, MemoryError) as fault:
        raise source.fault(
            Place(1, 1), "Python cannot parse this text", found=str(fault)[:80], write="a rule as in rules/README.md"
        ) from None


def _definitions(source: Source, tree: ast.Module) -> list[Rule]:
    rules = []
    for position, statement in enumerate(tree.body):
        if isinstance(statement, ast.FunctionDef):
            rules.append(_definition(source, statement))
        elif position or not _is_docstring(statement):
            what = "only rules may stand here"
            raise source.fault(statement, what, write='@elementwise("module.f") and below it: def f(x: Real) -> y:')
    return rules


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _definition(source: Source, tree: ast.FunctionDef) -> Rule:
    kind, target, solve = read_decorator(source, tree)
    parameters = read_parameters(source, tree)
    results = read_results(source, tree)
    body = _Body(
        source,
        tree.name,
        frozenset(parameter.name for parameter in parameters),
        frozenset(parameter.name for parameter in parameters if parameter.variadic),
        results,
        target,
    )
    statements = tree.body
    doc = ""
    if _is_docstring(statements[0]):
        doc = ast.get_docstring(tree) or ""
        statements = statements[1:]
    for statement in statements:
        body.read(statement, kind)
    if kind == "implicit":
        body.close_equation(tree)
        arrays = any(each.domain is not None and each.domain.kind == "array" for each in parameters)
        kind = "tensor" if arrays else "elementwise"
    first = tree.decorator_list[0].lineno
    linear = ""
    if kind == "linear":
        kind, linear = "tensor", _linear_operand(source, tree, parameters, results)
        for parameter in parameters:
            if parameter.moves:
                body.adjoints.setdefault(parameter.name, Literal(_UNKNOWN))
    rule = Rule(
        kind,
        tree.name,
        target,
        parameters,
        results,
        body.primal,
        body.partials,
        body.adjoints,
        body.loop,
        tuple(body.kinks),
        doc,
        source.file,
        tree.lineno + source.first - 1,
        "\n".join(source.lines[first - 1 : tree.end_lineno]),
        linear,
        body.parts,
        body.shared,
        body.equation,
        body.start,
        solve,
    )
    body.close()
    source.mark(rule, tree)
    return rule


def _linear_operand(
    source: Source, tree: ast.FunctionDef, parameters: Sequence[Parameter], results: Sequence[str]
) -> str:
    """The operand in which a function is linear: the first, of one result."""
    first = parameters[0] if parameters else None
    fits = first is not None and first.domain is not None and first.domain.kind == "array" and not first.variadic
    if first is None or not fits or len(results) > 1:
        what = "a @linear function has one result, and is linear in its first operand, an array"
        write = f"def {tree.name}(v: Array, x: Array) -> y: ..."
        raise source.fault(tree, what, found=f"def {tree.name}({ast.unparse(tree.args)})", write=write)
    return first.name


@dataclass(slots=True)
class _Body:
    """Collects the statements of one rule."""

    source: Source
    function: str
    parameters: frozenset[str]
    variadic: frozenset[str]
    results: tuple[str, ...]
    target: str | None
    parts: dict[str, Expression] = field(default_factory=dict)
    unread: dict[str, ast.expr] = field(default_factory=dict)
    shared: dict[str, Expression] = field(default_factory=dict)
    primal: dict[str, Expression] = field(default_factory=dict)
    partials: dict[tuple[str, str], Expression] = field(default_factory=dict)
    adjoints: dict[str, Expression] = field(default_factory=dict)
    equation: Expression | None = None
    start: Expression | None = None
    loop: str | None = None
    kinks: list[Expression] = field(default_factory=list)

    def read(self, statement: ast.stmt, kind: str) -> None:
        if isinstance(statement, ast.Expr) and getattr(statement.value, "value", None) is Ellipsis:
            if kind not in ("nodiff", "linear"):
                raise self._fault(statement, "the body is missing", self._example(kind))
            return
        if kind == "nodiff":
            raise self._fault(statement, "a rule without derivative has no body", f"def {self.function}(...) -> y: ...")
        if kind == "implicit" and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Compare):
            self._equation(statement.value)
            return
        if isinstance(statement, ast.Assert):
            if statement.msg is not None:
                raise self._fault(statement.msg, "a kink has no message", "assert x != 0    # a comment says why")
            self.kinks.append(self._expression(statement.test, None))
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            self._assign(statement.targets[0], statement.value, kind)
        else:
            raise self._fault(statement, "this statement is not part of the rule language", self._example(kind))

    def _assign(self, target: ast.expr, value: ast.expr, kind: str) -> None:
        if isinstance(target, ast.Name) and target.id in self.results and kind == "implicit":
            if self.start is not None:
                raise self._fault(target, "this is written twice", "one of the two lines")
            self.start = self._expression(value, None)
            return
        if isinstance(target, ast.Name) and target.id in self.results:
            self._value(target, value)
            return
        if isinstance(target, ast.Name) and kind != "linear":
            self._part(target, value)
            return
        inner = target.slice if isinstance(target, ast.Subscript) else None
        if kind == "implicit":
            what = "the partials of an @implicit rule follow from its equation"
            raise self._fault(target, what, "@elementwise in place of @implicit, or leave the line out")
        if not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name) or target.value.id != "d":
            raise self._fault(target, "a rule assigns locals, its results and d[...] only", self._example(kind))
        if isinstance(inner, ast.Tuple) and len(inner.elts) == 2 and all(isinstance(e, ast.Name) for e in inner.elts):
            pair: tuple[str, str] = tuple(e.id for e in inner.elts if isinstance(e, ast.Name))  # type: ignore[assignment]
            self._put(self.partials, pair, target, self._expression(value, None))
        elif isinstance(inner, ast.Name):
            self._put(self.adjoints, inner.id, target, self._expression(value, None))
        elif isinstance(inner, ast.Subscript) and all(isinstance(e, ast.Name) for e in (inner.value, inner.slice)):
            self._variadic(ast.unparse(inner.value), ast.unparse(inner.slice), target, value)
        else:
            raise self._fault(target, "this is neither d[y, x] nor d[x] nor d[xs[i]]", self._example(kind))

    def _equation(self, tree: ast.Compare) -> None:
        """Take in ``0 == F``, or two sides of which neither is 0."""
        example = f"0 == {self.results[0]} - {min(self.parameters, default='x')}"
        if self.equation is not None:
            raise self._fault(tree, "an @implicit rule has one equation", example)
        if len(tree.ops) != 1 or not isinstance(tree.ops[0], ast.Eq):
            raise self._fault(tree, "an equation has two sides with == between them", example)
        if self.results[0] not in _names(tree):
            raise self._fault(tree, f"the equation does not hold `{self.results[0]}`, which it defines", example)
        sides = [self._expression(each, None) for each in (tree.left, tree.comparators[0])]
        rest = [each for each in sides if not is_zero(each)]
        whole = rest[0] if len(rest) == 1 else Call("subtract", tuple(sides))
        self.equation = self.source.mark(whole, tree)

    def close_equation(self, tree: ast.FunctionDef) -> None:
        """Refuse an ``@implicit`` rule without equation, or with several results."""
        if len(self.results) > 1:
            what = "an @implicit rule has one result"
            raise self._fault(tree, what, f"def {self.function}(x: Real) -> {self.results[0]}:")
        if self.equation is None:
            what = "an @implicit rule has an equation that its result solves"
            raise self._fault(tree, what, f"0 == {self.results[0]} - {min(self.parameters, default='x')}")

    def _value(self, target: ast.Name, value: ast.expr) -> None:
        """What a result is; written in locals, it is the shared form, and the definition if there is no other."""
        expression = self._expression(value, None)
        if self.parts.keys().isdisjoint(_names(value)):
            self._put(self.primal, target.id, target, expression)
            return
        if self.target is not None or target.id in self.primal:
            self._put(self.shared, target.id, target, expression)
        if not (self.target or "").startswith(_LIBRARIES):
            self.primal.setdefault(target.id, expression)

    def _part(self, target: ast.Name, value: ast.expr) -> None:
        if target.id in self.parameters or target.id == "d" or target.id in CONSTANTS:
            raise self._fault(target, f"`{target.id}` is a name of something else", f"{target.id}_ = ...")
        if self.partials or self.adjoints:
            what = "a local stands above the derivatives, which are written in it"
            raise self._fault(target, what, f"{target.id} = ...    # above the first d[...]")
        self._put(self.parts, target.id, target, self._expression(value, None))
        self.unread[target.id] = target

    def close(self) -> None:
        """Refuse a local that nothing is written in."""
        for name, target in self.unread.items():
            raise self._fault(target, f"`{name}` is used nowhere", "a right-hand side with it, or leave the line out")

    def _variadic(self, name: str, index: str, target: ast.expr, value: ast.expr) -> None:
        if name not in self.variadic:
            write = f"def {self.function}(*{name}: Array) -> y:"
            raise self._fault(target, f"`{name}` is not a variadic parameter", write)
        taken = {*self.parameters, *self.results, *self.parts, "d"}
        if index in taken:
            free = "i" if "i" not in taken else f"{index}_"
            raise self._fault(target, f"the index `{index}` is a name of something else", f"d[{name}[{free}]] = ...")
        self.loop = index
        self._put(self.adjoints, name, target, self._expression(value, index))

    def _put(self, place: dict[_Key, Expression], key: _Key, target: ast.expr, value: Expression) -> None:
        if key in place:
            raise self._fault(target, "this is written twice", "one of the two lines")
        place[key] = value

    def _expression(self, tree: ast.expr, loop: str | None) -> Expression:
        names = self.parameters | frozenset(self.results) | ({loop} if loop else frozenset())
        for name in _names(tree):
            self.unread.pop(name, None)
        return ExpressionReader(self.source, Scope(names, self.variadic, loop, self.parts)).read(tree)

    def _example(self, kind: str) -> str:
        operand = min(self.parameters, default="x")
        return f"d[{self.results[0]}, {operand}] = ..." if kind == "elementwise" else f"d[{operand}] = ..."

    def _fault(self, thing: ast.AST, what: str, write: str) -> RuleError:
        return self.source.fault(thing, what, write=write)


def _names(tree: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
