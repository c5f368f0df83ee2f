"""Rewrites expressions, and the definitions of functions and classes."""

from __future__ import annotations

import ast
from typing import Any

from yota.tracing.rewriting.branch_rewriting import nested
from yota.tracing.rewriting.rewriter import (
    COMPARISONS,
    OPERATORS,
    SIGNS,
    Rewriter,
    load,
    placed,
    rebuilt,
    rewrites,
    rule,
    stored,
)


@rewrites(ast.BinOp)
def _binary(rewriter: Rewriter, part: ast.BinOp) -> Any:
    return rule(OPERATORS[type(part.op)], rewriter.rewrite(part.left), rewriter.rewrite(part.right))


@rewrites(ast.UnaryOp)
def _unary(rewriter: Rewriter, part: ast.UnaryOp) -> Any:
    if isinstance(part.op, ast.Not):
        return rewriter.test(part)
    return (
        part if isinstance(part.operand, ast.Constant) else rule(SIGNS[type(part.op)], rewriter.rewrite(part.operand))
    )


@rewrites(ast.Compare)
def _compare(rewriter: Rewriter, part: ast.Compare) -> Any:
    every = [part.left, *part.comparators]
    if not all(isinstance(each, (ast.Name, ast.Constant)) for each in every[1:-1]):
        # What stands in the middle is computed once.
        first, *others = (rule("asked", rewriter.rewrite(each)) for each in every)
        return ast.Compare(first, part.ops, others)
    found: list[Any] = []
    for kind, one, other in zip(part.ops, every, every[1:], strict=False):
        left, right = rewriter.rewrite(one), rewriter.rewrite(other)
        name = COMPARISONS.get(type(kind))
        found.append(ast.Compare(left, [kind], [right]) if name is None else rule(name, left, right))
    if len(found) == 1:
        return found[0]
    return ast.BoolOp(ast.And(), [*(rule("asked", each) for each in found[:-1]), found[-1]])


@rewrites(ast.BoolOp)
def _boolean(rewriter: Rewriter, part: ast.BoolOp) -> Any:
    *values, last = map(rewriter.rewrite, part.values)
    return ast.BoolOp(part.op, [*(placed(rule("asked", each), each) for each in values), last])


@rewrites(ast.Attribute)
def _attribute(rewriter: Rewriter, part: ast.Attribute) -> Any:
    return rule("attribute", rewriter.rewrite(part.value), ast.Constant(rewriter.scope.mangled(part.attr)))


@rewrites(ast.Subscript)
def _subscript(rewriter: Rewriter, part: ast.Subscript) -> Any:
    return rule("item", rewriter.rewrite(part.value), rewriter.rewrite(part.slice))


@rewrites(ast.Slice)
def _slice(rewriter: Rewriter, part: ast.Slice) -> Any:
    bounds = (part.lower, part.upper, part.step)
    return rule("slice", *(ast.Constant(None) if each is None else rewriter.rewrite(each) for each in bounds))


@rewrites(ast.Starred)
def _starred(rewriter: Rewriter, part: ast.Starred) -> Any:
    return ast.Starred(rewriter.iterated(part.value), ast.Load())


@rewrites(ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
def _made(rewriter: Rewriter, part: ast.expr) -> Any:
    return rule("made", rebuilt(rewriter, part))


@rewrites(ast.comprehension)
def _comprehension(rewriter: Rewriter, part: ast.comprehension) -> Any:
    values = rewriter.rewrite(part.iter) if part.is_async else rewriter.iterated(part.iter)
    return ast.comprehension(part.target, values, list(map(rewriter.test, part.ifs)), part.is_async)


@rewrites(ast.NamedExpr)
def _named(rewriter: Rewriter, part: ast.NamedExpr) -> Any:
    return ast.NamedExpr(part.target, stored(rewriter, part.target, rewriter.rewrite(part.value)))


@rewrites(ast.Call)
def _call(rewriter: Rewriter, part: ast.Call) -> Any:
    if isinstance(part.func, ast.Name) and part.func.id == "super" and not part.args:
        return part  # it looks at the frame that calls it
    if is_of_all(part) and rewriter.may_loop:
        return _of_all(rewriter, part)
    found = rule("call", rewriter.rewrite(part.func), *rewriter.every(part.args))
    found.keywords = [ast.keyword(each.arg, rewriter.rewrite(each.value)) for each in part.keywords]
    return found


def is_of_all(part: ast.Call) -> bool:
    """Whether a function that may be `sum` or `numpy.array` is called with an expression for each of some values."""
    name = getattr(part.func, "id", getattr(part.func, "attr", ""))
    if name not in ("sum", "array", "asarray") or len(part.args) != 1 or part.keywords:
        return False
    (every,) = part.args
    if not isinstance(every, (ast.GeneratorExp, ast.ListComp)) or len(every.generators) > 1:
        return False
    each = every.generators[0]
    own = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    is_plain = isinstance(each.target, ast.Name) and not each.ifs and not each.is_async
    return is_plain and not any(isinstance(inner, own) for inner in ast.walk(every.elt))


def _of_all(rewriter: Rewriter, part: ast.Call) -> Any:
    every: Any = part.args[0]
    (each,) = every.generators
    term = rewriter.rewrite(placed(ast.Lambda(_given(each.target.id), every.elt), every.elt))
    over = ast.comprehension(each.target, load(".values"), [], 0)
    terms = ast.Lambda(_given(".values"), rewriter.rewrite(placed(ast.GeneratorExp(every.elt, [over]), every)))
    told = map(ast.Constant, (isinstance(every, ast.ListComp), every.lineno, every.end_lineno))
    return rule("of_all", rewriter.rewrite(part.func), rewriter.rewrite(each.iter), term, terms, *told)


def _given(name: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name)], None, [], [], None, [])


@rewrites(ast.JoinedStr)
def _joined(rewriter: Rewriter, part: ast.JoinedStr) -> Any:
    return rule("joined", *map(rewriter.rewrite, part.values))


@rewrites(ast.FormattedValue)
def _formatted(rewriter: Rewriter, part: ast.FormattedValue) -> Any:
    specification = ast.Constant("") if part.format_spec is None else rewriter.rewrite(part.format_spec)
    return rule("formatted", rewriter.rewrite(part.value), ast.Constant(part.conversion), specification)


def _with_defaults(rewriter: Rewriter, given: ast.arguments) -> ast.arguments:
    found = without_defaults(given)
    found.kw_defaults, found.defaults = rewriter.every(given.kw_defaults), rewriter.every(given.defaults)
    return found


def without_defaults(given: ast.arguments) -> ast.arguments:
    """The parameters of a function, all without default values."""
    missing: list[Any] = [None] * len(given.kwonlyargs)
    return ast.arguments(given.posonlyargs, given.args, given.vararg, given.kwonlyargs, missing, given.kwarg, [])


@rewrites(ast.Lambda)
def _lambda(rewriter: Rewriter, part: ast.Lambda) -> Any:
    (body,) = rewriter.within(part, rewriter.scope.owner, [part.body])
    return ast.Lambda(_with_defaults(rewriter, part.args), body)


@rewrites(ast.FunctionDef, ast.AsyncFunctionDef)
def _function(rewriter: Rewriter, part: Any) -> Any:
    found = _definition(rewriter, part, function_body(rewriter, part, rewriter.scope.owner))
    found.args = _with_defaults(rewriter, part.args)
    return found


@rewrites(ast.ClassDef)
def _class(rewriter: Rewriter, part: ast.ClassDef) -> Any:
    found = _definition(rewriter, part, rewriter.within(part, part.name, part.body))
    found.bases, found.keywords = rewriter.every(part.bases), rewriter.every(part.keywords)
    return found


def _definition(rewriter: Rewriter, part: Any, body: list[Any]) -> Any:
    decorators = [placed(rule("decorate", rewriter.rewrite(each)), each) for each in part.decorator_list]
    return type(part)(**{**dict(ast.iter_fields(part)), "body": body, "decorator_list": decorators})


def function_body(rewriter: Rewriter, part: Any, owner: str | None) -> list[Any]:
    """The statements of a function."""
    found = rewriter.within(part, owner, nested(part.body, ast.Return) if rewriter.selects else part.body)
    if part.args.kwarg is not None:
        noted = placed(ast.Expr(rule("made", load(part.args.kwarg.arg))), part.args.kwarg)
        found.insert(ast.get_docstring(part, clean=False) is not None, noted)
    return found
