"""Rewrites decisions in a trip of a loop: both branches become functions, whose results may be selected.

``if test: x = one else: y = other`` becomes::

    def .one1(.given): [x, y] = .given; x = one; return (x, y)
    def .other2(.given): [x, y] = .given; y = other; return (x, y)
    [x, y] = .either(test, .one1, .other2, ("x", "y"))
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

from yota.tracing.rewriting.rewriter import Rewriter, load, placed, rebuilt, rewrites, rule, store
from yota.tracing.rewriting.scopes import bound_in

LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Try, ast.With)


def contains(part: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    """Whether a part holds one of some kinds."""
    return any(isinstance(each, kinds) for each in ast.walk(part))


def nested(statements: Sequence[ast.stmt], leaving: type[ast.stmt]) -> list[ast.stmt]:
    """Statements of which those behind an ``if`` that ends with ``leaving`` stand in its ``else``.

    A ``continue`` is left out, for nothing follows it.
    """
    for place, part in enumerate(statements):
        if isinstance(part, ast.If) and isinstance(part.body[-1], leaving):
            body = part.body if leaving is ast.Return else part.body[:-1]
            rest = nested([*part.orelse, *statements[place + 1 :]], leaving)
            test = ast.If(part.test, nested(body, leaving) or [placed(ast.Pass(), part)], rest)
            return [*statements[:place], ast.copy_location(test, part)]
    return [*statements]


@rewrites(ast.If)
def _if(rewriter: Rewriter, part: ast.If) -> Any:
    if not rewriter.selects:
        return rebuilt(rewriter, part)
    if isinstance(part.body[-1], ast.Raise) and not part.orelse:
        return ast.If(placed(rule("fails", decided(rewriter, part.test)), part.test), rewriter.every(part.body), [])
    returns = all(branch and isinstance(_last(branch), ast.Return) for branch in (part.body, part.orelse))
    leaving = tuple(each for each in LEAVING if not (returns and each is ast.Return))
    inside = [*part.body, *part.orelse]
    names = sorted(bound_in(inside))
    fits = (
        not any(contains(each, (*leaving, ast.ClassDef, ast.FunctionDef)) for each in inside)
        and not any(is_stored_in(each) for statement in inside for each in ast.walk(statement))
        and not isinstance(rewriter.scope.tree, ast.ClassDef)
        and rewriter.scope.local.issuperset(names)
    )
    if not fits:
        return rebuilt(rewriter, part)
    found: list[Any] = []
    for branch in (part.body, part.orelse):
        ends = [] if returns else [ast.Return(ast.Tuple(list(map(load, names)), ast.Load()))]
        name = rewriter.new("branch")
        found.append(of_variables(name, names, [*rewriter.every(branch), *ends]))
    told: Any = tuple(names)
    chosen = rule("either", decided(rewriter, part.test), *(load(each.name) for each in found), ast.Constant(told))
    return [*found, placed(ast.Return(chosen) if returns else taken(names, chosen), part)]


@rewrites(ast.IfExp)
def _if_expression(rewriter: Rewriter, part: ast.IfExp) -> Any:
    if not rewriter.selects or contains(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
        return rebuilt(rewriter, part)
    given = ast.arguments([], [ast.arg(".given")], None, [], [], None, [])
    parts = [placed(ast.Lambda(given, rewriter.rewrite(each)), each) for each in (part.body, part.orelse)]
    return rule("either", decided(rewriter, part.test), *parts)


def decided(rewriter: Rewriter, test: Any) -> Any:
    """A condition, traced if it depends on inputs."""
    if isinstance(test, ast.Compare) and len(test.ops) > 1 and all(map(_is_plain, test.comparators[:-1])):
        every = [test.left, *test.comparators]
        pairs = zip(every, test.ops, every[1:], strict=False)
        test = placed(ast.BoolOp(ast.And(), [ast.Compare(one, [op], [other]) for one, op, other in pairs]), test)
    if isinstance(test, ast.BoolOp):
        none = ast.arguments([], [], None, [], [], None, [])
        parts = [placed(ast.Lambda(none, decided(rewriter, each)), each) for each in test.values]
        return placed(rule("joint", ast.Constant(isinstance(test.op, ast.And)), *parts), test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return placed(rule("negated", decided(rewriter, test.operand)), test)
    return rewriter.rewrite(test)


def of_variables(name: str, names: Iterable[str], body: list[Any], *others: str) -> Any:
    """A function of a list with the values of variables."""
    given = ast.arguments([], [ast.arg(".given"), *map(ast.arg, others)], None, [], [], None, [])
    return ast.FunctionDef(name, given, [taken(names, load(".given")), *body], [], None)


def taken(names: Iterable[str], values: Any) -> Any:
    """``[names] = values``."""
    return ast.Assign([ast.List(list(map(store, names)), ast.Store())], values)


def _is_plain(part: ast.expr) -> bool:
    return isinstance(part, (ast.Name, ast.Constant))


def _last(statements: Sequence[ast.stmt]) -> ast.stmt:
    """The statement that ends some: of an ``if`` with two branches that return, a ``return``."""
    last = statements[-1]
    if isinstance(last, ast.If) and last.orelse and isinstance(_last(last.body), ast.Return):
        return _last(last.orelse)
    return last


def is_stored_in(part: ast.AST) -> bool:
    """Whether a part is an element or an attribute that is assigned."""
    return isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store)
