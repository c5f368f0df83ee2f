"""Rewrites loops: those whose end depends on values get functions of one trip, by which they may be recorded as loops.

``while test: body`` becomes::

    .loop1 = .loop(.test1, .body1, ...)    # one trip, as functions of the variables that it assigns
    while True:
        .recorded2 = .loop1.recorded()     # the variables after the last trip, if the rest was recorded as a loop
        if .recorded2 is not None:
            [x, y] = .recorded2
            break
        if not test:
            break
        body

A ``while True``, or a ``for`` over a range, with one ``if`` that leaves it asks ahead of this ``if``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from yota.tracing.rewriting.rewriter import Rewriter, load, placed, rebuilt, rewrites, rule, store
from yota.tracing.rewriting.statement_rewriting import assign

LEAVING = (ast.Break, ast.Continue, ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Delete, ast.Try, ast.With)


_DEEPEST = 2
"""Loops around a loop up to which it may be recorded as one: the body of each is written twice."""


def _contains(part: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return any(isinstance(each, kinds) for each in ast.walk(part))


@rewrites(ast.While)
def _while(rewriter: Rewriter, part: ast.While) -> list[Any]:
    leaving = _exit_of(part)
    if leaving is not None:
        before, after = _around(part, leaving)
        names = _assigned(rewriter, leaving.test, [*after, *before])
        if names is not None:
            return _with_exit(rewriter, part, leaving, names)
    names = None if part.orelse else _assigned(rewriter, part.test, part.body)
    if names is None:
        return [rebuilt(rewriter, part)]
    begin, loop = _trips(rewriter, part, part.test, part.body, [], names)
    ends = placed(ast.If(ast.UnaryOp(ast.Not(), rewriter.test(part.test)), [ast.Break()], []), part.test)
    body = [*_recorded(rewriter, loop, names, [ast.Break()]), ends, *rewriter.every(part.body)]
    return [*begin, ast.While(ast.Constant(True), body, [])]


@rewrites(ast.For)
def _for(rewriter: Rewriter, part: ast.For) -> list[Any]:
    leaving = _exit_of(part)
    if leaving is not None and isinstance(part.target, ast.Name):
        before, after = _around(part, leaving)
        names = _assigned(rewriter, leaving.test, [*after, *before])
        if names is not None and part.target.id not in names and part.target.id in rewriter.scope.local:
            return _with_exit(rewriter, part, leaving, names)
    if isinstance(part.target, ast.Name):
        names = _assigned(rewriter, ast.Constant(False), part.body)
        if names is not None and part.target.id not in names and part.target.id in rewriter.scope.local:
            written = sorted(set(_written(part)) - set(names))
            if rewriter.scope.local.issuperset(written):
                return _counted(
                    rewriter, part, {**names, part.target.id: True, **dict.fromkeys(written, True)}, written
                )
    return [_over(rewriter, part, rewriter.iterated(part.iter), rewriter.every(part.body))]


def _written(part: ast.For) -> Iterator[str]:
    """The variables that hold arrays into which trips write."""
    for each in ast.walk(part):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store) and isinstance(each.value, ast.Name):
            yield each.value.id


def _counted(rewriter: Rewriter, part: ast.For, names: dict[str, bool], written: Sequence[str]) -> list[Any]:
    """A ``for`` that ends by itself alone."""
    number = part.target.id  # type: ignore[attr-defined]
    begin, loop = _trips(rewriter, part, None, part.body, [], names, number, written)
    last = [ast.Expr(_method(loop, "stop")), ast.Continue()]
    body = [*_recorded(rewriter, loop, names, last), *rewriter.every(part.body)]
    values = placed(_method(loop, "over", rewriter.rewrite(part.iter)), part.iter)
    return [*begin, _over(rewriter, part, values, body)]


@rewrites(ast.AsyncFor)
def _async_for(rewriter: Rewriter, part: ast.AsyncFor) -> Any:
    return _over(rewriter, part, rewriter.rewrite(part.iter), rewriter.every(part.body))


def _over(rewriter: Rewriter, part: ast.For | ast.AsyncFor, values: Any, body: list[Any]) -> Any:
    """A ``for`` of which each value is assigned as an assignment does it."""
    target = part.target
    if isinstance(target, ast.Name):
        first: list[Any] = [ast.Expr(rule("named", load(target.id), ast.Constant(target.id)))]
    else:
        name = rewriter.new()
        first, target = list(assign(rewriter, target, load(name))), store(name)
    first = [placed(each, part.target) for each in first]
    return type(part)(target, values, [*first, *body], rewriter.every(part.orelse))


def _exit_of(part: ast.For | ast.While) -> ast.If | None:
    """The one way out of ``while True``, or of the trips of a ``for``: an ``if`` among its statements."""
    found = [each for each in part.body if _contains(each, LEAVING)]
    leaving = found[0] if len(found) == 1 else None
    if not isinstance(leaving, ast.If) or leaving.orelse or not isinstance(leaving.body[-1], (ast.Break, ast.Return)):
        return None
    if _contains(leaving.test, LEAVING) or any(_contains(each, LEAVING) for each in leaving.body[:-1]):
        return None
    endless = isinstance(part, ast.For) or (isinstance(part.test, ast.Constant) and part.test.value is True)
    return leaving if endless else None


def _around(part: ast.For | ast.While, leaving: ast.If) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements of a trip ahead of its exit, and those behind it."""
    place = part.body.index(leaving)
    return part.body[:place], part.body[place + 1 :]


def _with_exit(rewriter: Rewriter, part: ast.For | ast.While, leaving: ast.If, names: dict[str, bool]) -> list[Any]:
    """A loop that is left by an ``if`` in its body."""
    before, after = _around(part, leaving)
    number = part.target.id if isinstance(part, ast.For) and isinstance(part.target, ast.Name) else ""
    if number:
        names = {**names, number: True}
    begin, loop = _trips(rewriter, part, leaving.test, after, before, names, number)
    left = rewriter.every(leaving.body)
    follows = placed(ast.If(rewriter.test(leaving.test), left, []), leaving)
    last = left
    if number:
        # The last trip need not leave; then nothing follows it.
        last = [follows, ast.Expr(_method(loop, "stop")), *rewriter.every(after), ast.Continue()]
    body = [*rewriter.every(before), *_recorded(rewriter, loop, names, last), follows, *rewriter.every(after)]
    if isinstance(part, ast.While):
        return [*begin, ast.While(part.test, body, rewriter.every(part.orelse))]
    values = placed(_method(loop, "over", rewriter.rewrite(part.iter)), part.iter)
    return [*begin, _over(rewriter, part, values, body)]


def _trips(
    rewriter: Rewriter,
    part: ast.For | ast.While,
    test: ast.expr | None,
    first: Sequence[ast.stmt],
    last: Sequence[ast.stmt],
    names: dict[str, bool],
    number: str = "",
    written: Sequence[str] = (),
) -> tuple[list[Any], str]:
    """Statements that make the functions of one trip and the loop of them, and the variable that holds it.

    test: what ends the loop: of a ``while``, where it does not hold; of others, where it does. None if nothing does.
    names: the variables that trips assign, and whether there must be a value before the first one.
    number: the variable of a ``for``, which goes on between the statements ``first`` and ``last``.
    """
    condition, trip, loop, step = (rewriter.new(each) for each in ("test", "body", "loop", "step"))
    advance = (
        [ast.Assign([store(number)], ast.BinOp(load(number), ast.Add(), load(step)))]
        if number and test is not None
        else []
    )
    rewriter.depth += 1 if test is None else _DEEPEST
    statements = [*rewriter.every(first), *advance, *rewriter.every(last)]
    tested = None if test is None else _together(rewriter, test)
    rewriter.depth -= 1 if test is None else _DEEPEST
    after = ast.Tuple(list(map(load, names)), ast.Load())
    needed = frozenset(name for name, is_needed in names.items() if is_needed)
    leaves = isinstance(part, ast.For) or test is not part.test
    told: list[Any] = [tuple(names), needed, number, leaves, (part.lineno, part.end_lineno), tuple(written)]
    asked: Any = ast.Constant(None) if tested is None else load(condition)
    return [
        *([] if tested is None else [_of_variables(condition, names, step, [ast.Return(tested)])]),
        _of_variables(trip, names, step, [*statements, ast.Return(after)]),
        ast.Assign([store(loop)], rule("loop", asked, load(trip), *map(ast.Constant, told))),
    ], loop


def _of_variables(name: str, names: Iterable[str], step: str, body: list[Any]) -> Any:
    """A function of the variables that trips assign, and of the step of the loop."""
    given = ast.arguments([], [ast.arg(".given"), ast.arg(step)], None, [], [], None, [])
    return ast.FunctionDef(name, given, [_taken(names, ".given"), *body], [], None)


def _taken(names: Iterable[str], held: str) -> Any:
    """``[names] = held``."""
    return ast.Assign([ast.List(list(map(store, names)), ast.Store())], load(held))


def _method(held: str, name: str, *args: Any) -> Any:
    return ast.Call(ast.Attribute(load(held), name, ast.Load()), [*args], [])


def _recorded(rewriter: Rewriter, loop: str, names: Iterable[str], last: list[Any]) -> list[Any]:
    """``if`` the rest was recorded as a loop: take the variables after it, and go on with ``last``."""
    found = rewriter.new("recorded")
    is_there = ast.Compare(load(found), [ast.IsNot()], [ast.Constant(None)])
    return [ast.Assign([store(found)], _method(loop, "recorded")), ast.If(is_there, [_taken(names, found), *last], [])]


def _together(rewriter: Rewriter, test: Any) -> Any:
    """A condition of which all parts are computed."""
    if isinstance(test, ast.BoolOp):
        name = "logical_and" if isinstance(test.op, ast.And) else "logical_or"
        return rule(name, *(_together(rewriter, each) for each in test.values))
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return rule("logical_not", _together(rewriter, test.operand))
    return rewriter.rewrite(test)


def _assigned(rewriter: Rewriter, test: ast.expr, statements: Sequence[ast.stmt]) -> dict[str, bool] | None:
    """The names that trips assign, and whether they are read elsewhere; None if trips may do anything else."""
    inside = [*ast.walk(test), *(each for statement in statements for each in ast.walk(statement))]
    stored = {each.id for each in inside if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    tests = [*ast.walk(test)]
    joined = any(isinstance(each, ast.BoolOp) for each in tests)
    fits = (
        rewriter.depth < _DEEPEST
        and rewriter.may_loop
        # What asks for a truth within, what assigns, or what another part keeps from being computed.
        and not any(isinstance(each, (ast.IfExp, ast.NamedExpr)) or len(getattr(each, "ops", ())) > 1 for each in tests)
        and not (joined and any(_may_fail(each) for each in tests))
        and not any(isinstance(each, LEAVING) for each in inside)
        and not isinstance(rewriter.scope.tree, ast.ClassDef)
        and stored <= rewriter.scope.local
    )
    if not fits:
        return None
    own = set(map(id, inside))
    around = (each for each in ast.walk(rewriter.scope.tree) if id(each) not in own)
    read = {each.id for each in around if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    return {name: name in read for name in sorted(stored)}


def _may_fail(part: ast.AST) -> bool:
    is_size = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "abs"
    return isinstance(part, (ast.Subscript, ast.Call)) and not is_size
