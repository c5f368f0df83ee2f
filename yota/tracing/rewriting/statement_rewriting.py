"""Rewrites statements but for loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from yota.tracing.bytecode import MATCHES_ARRAYS
from yota.tracing.rewriting.rewriter import (
    OPERATORS,
    Rewriter,
    is_outside,
    load,
    placed,
    rebuilt,
    rewrites,
    rule,
    store,
    stored,
)


def assign(rewriter: Rewriter, target: Any, value: Any) -> Iterator[Any]:
    """``target = value``, as statements."""
    if isinstance(target, ast.Name):
        yield ast.Assign([target], stored(rewriter, target, value))
    elif isinstance(target, ast.Attribute):
        attribute = ast.Constant(rewriter.scope.mangled(target.attr))
        yield placed(ast.Expr(rule("set_attribute", value, rewriter.rewrite(target.value), attribute)), target)
    elif isinstance(target, ast.Subscript):
        receiver, index = rewriter.rewrite(target.value), rewriter.rewrite(target.slice)
        yield ast.Expr(rule("set_item", value, receiver, index, *_root(target)))
    elif isinstance(target, ast.Starred):
        yield from assign(rewriter, target.value, value)
    else:
        names = [rewriter.new() for _ in target.elts]
        parts = [
            ast.Starred(store(name), ast.Store()) if isinstance(each, ast.Starred) else store(name)
            for name, each in zip(names, target.elts, strict=True)
        ]
        yield placed(ast.Assign([ast.Tuple(parts, ast.Store())], rule("unpacked", value)), target)
        for name, each in zip(names, target.elts, strict=True):
            yield from assign(rewriter, each, load(name))


def _root(target: Any) -> list[Any]:
    """The variable that a write into a part of it leaves with another value, and its name."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    return [load(target.id), ast.Constant(target.id)] if isinstance(target, ast.Name) else []


@rewrites(ast.Assign)
def _assign(rewriter: Rewriter, part: ast.Assign) -> list[Any]:
    value = rewriter.rewrite(part.value)
    if len(part.targets) == 1:
        return list(assign(rewriter, part.targets[0], value))
    name = rewriter.new()
    return [
        ast.Assign([store(name)], value),
        *(each for target in part.targets for each in assign(rewriter, target, load(name))),
    ]


@rewrites(ast.AnnAssign)
def _annotated(rewriter: Rewriter, part: ast.AnnAssign) -> Any:
    if part.value is None:
        return part
    value = rewriter.rewrite(part.value)
    if not isinstance(part.target, ast.Name):
        return list(assign(rewriter, part.target, value))
    return ast.AnnAssign(part.target, part.annotation, stored(rewriter, part.target, value), part.simple)


@rewrites(ast.AugAssign)
def _augmented(rewriter: Rewriter, part: ast.AugAssign) -> list[Any]:
    target: Any = part.target
    name = f"i{OPERATORS[type(part.op)]}"
    if isinstance(target, ast.Name):
        return list(assign(rewriter, target, rule(name, load(target.id), rewriter.rewrite(part.value))))
    receiver, index = rewriter.new(), rewriter.new()
    is_attribute = isinstance(target, ast.Attribute)
    at = ast.Constant(rewriter.scope.mangled(target.attr)) if is_attribute else rewriter.rewrite(target.slice)
    where = load(receiver), load(index)
    old = placed(rule("attribute" if is_attribute else "item", *where), target)
    new = rule(name, old, rewriter.rewrite(part.value))
    written = rule("set_attribute", new, *where) if is_attribute else rule("set_item", new, *where, *_root(target))
    return [
        ast.Assign([store(receiver)], rewriter.rewrite(target.value)),
        ast.Assign([store(index)], at),
        ast.Expr(written),
    ]


@rewrites(ast.Delete)
def _delete(rewriter: Rewriter, part: ast.Delete) -> list[Any]:
    return [found for target in part.targets for found in _deleted(rewriter, target)]


def _deleted(rewriter: Rewriter, target: Any) -> Iterator[Any]:
    if isinstance(target, ast.Name):
        if is_outside(rewriter, rewriter.scope.mangled(target.id)):
            yield ast.Expr(rule("outside", ast.Constant(None)))
        yield ast.Delete([target])
    elif isinstance(target, ast.Attribute):
        name = ast.Constant(rewriter.scope.mangled(target.attr))
        yield ast.Expr(rule("delete_attribute", rewriter.rewrite(target.value), name))
    elif isinstance(target, ast.Subscript):
        yield ast.Expr(rule("delete_item", rewriter.rewrite(target.value), rewriter.rewrite(target.slice)))
    else:
        for each in target.elts:
            yield from _deleted(rewriter, each)


@rewrites(ast.Match)
def _match(rewriter: Rewriter, part: ast.Match) -> Any:
    subject = rewriter.rewrite(part.subject)
    patterns = (each for case in part.cases for each in ast.walk(case.pattern))
    if MATCHES_ARRAYS and any(isinstance(each, ast.MatchSequence) for each in patterns):
        subject = placed(rule("matched", subject), part.subject)
    return ast.Match(subject, rewriter.every(part.cases))


@rewrites(ast.With)
def _with(rewriter: Rewriter, part: ast.With) -> Any:
    first, *others = part.items
    target, held, body = first.optional_vars, None, []
    if target is not None:
        name = rewriter.new()
        held = store(name)
        body += [placed(each, target) for each in assign(rewriter, target, load(name))]
    # One statement for each context: a later one may need what an earlier one was assigned to.
    inner: list[Any] = [placed(ast.With(others, part.body), part)] if others else part.body
    context = placed(rule("managed", rewriter.rewrite(first.context_expr)), first.context_expr)
    return ast.With([ast.withitem(context, held)], [*body, *rewriter.every(inner)])


@rewrites(ast.Try)
def _try(rewriter: Rewriter, part: ast.Try) -> Any:
    found = rebuilt(rewriter, part)
    if not found.handlers:
        return found
    # A name of an exception may be one that the body binds.
    name, kinds = rewriter.new(), [each.type or load("BaseException") for each in found.handlers]
    told = ast.Assign([store(name)], ast.Tuple(kinds, ast.Load()))
    unknown = ast.ExceptHandler(None, None, [ast.Assign([store(name)], ast.Constant(None))])
    found.body = [ast.With([ast.withitem(rule("tried", load(name)))], found.body)]
    # Without tracing there is nothing to catch.
    found.handlers.insert(0, ast.ExceptHandler(load(".YotaError"), None, [ast.Raise()]))
    return [placed(ast.Try([told], [unknown], [], []), part), found]
