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

from yota.tracing.rewriting.branch_rewriting import LEAVING, contains, decided, nested, of_variables, taken
from yota.tracing.rewriting.rewriter import Rewriter, load, placed, rebuilt, rewrites, rule, store
from yota.tracing.rewriting.scopes import bound_in
from yota.tracing.rewriting.statement_rewriting import assign

_DEEPEST = 2
"""Loops around a loop up to which it may be recorded as one: the body of each is written twice."""


@rewrites(ast.While)
def _while(rewriter: Rewriter, part: ast.While) -> list[Any]:
    leaving = exit_of(part)
    if leaving is not None:
        before, after = _around(part, leaving)
        names = _assigned(rewriter, leaving.test, [*after, *before])
        if names is not None:
            return _with_exit(rewriter, part, leaving, names)
    trip = nested(part.body, ast.Continue)
    names = None if part.orelse else _assigned(rewriter, part.test, trip)
    if names is None:
        return [rebuilt(rewriter, part)]
    begin, loop = _trips(rewriter, part, part.test, trip, [], names)
    ends = placed(ast.If(ast.UnaryOp(ast.Not(), rewriter.test(part.test)), [ast.Break()], []), part.test)
    body = [*_recorded(rewriter, loop, names, [ast.Break()]), ends, *rewriter.every(part.body)]
    return [*begin, ast.While(ast.Constant(True), body, [])]


@rewrites(ast.For)
def _for(rewriter: Rewriter, part: ast.For) -> list[Any]:
    leaving = exit_of(part)
    if leaving is not None and isinstance(part.target, ast.Name):
        before, after = _around(part, leaving)
        names = _assigned(rewriter, leaving.test, [*after, *before])
        if names is not None and part.target.id not in names and part.target.id in rewriter.scope.local:
            return _with_exit(rewriter, part, leaving, names)
    targets = bound_in([placed(ast.Assign([part.target], ast.Constant(None)), part)])
    names = _assigned(rewriter, ast.Constant(False), nested(part.body, ast.Continue))
    if names is not None and targets and targets.isdisjoint(names) and is_of_names(part.target):
        written = set(_written(part)) - set(names)
        if rewriter.scope.local.issuperset((*targets, *written)):
            return _counted(rewriter, part, {**names, **dict.fromkeys(sorted(written), True)})
    return [_over(rewriter, part, rewriter.iterated(part.iter), rewriter.every(part.body))]


def is_of_names(target: ast.expr) -> bool:
    """Whether an assignment sets variables alone."""
    return all(isinstance(each, (ast.Name, ast.Tuple, ast.List, ast.Store)) for each in ast.walk(target))


def _written(part: ast.For) -> Iterator[str]:
    """The variables that hold arrays into which trips write."""
    for each in ast.walk(part):
        is_stored = isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
        if is_stored or (isinstance(each, ast.keyword) and each.arg == "out"):
            held: Any = each
            if isinstance(held.value, ast.Name):
                yield held.value.id


def _counted(rewriter: Rewriter, part: ast.For, names: dict[str, bool]) -> list[Any]:
    """A ``for`` that ends by itself alone."""
    number = part.target.id if isinstance(part.target, ast.Name) else rewriter.new("item")
    names = {**names, number: True}
    values = load(number)
    first = [] if isinstance(part.target, ast.Name) else [placed(ast.Assign([part.target], values), part.target)]
    begin, loop = _trips(rewriter, part, None, [*first, *nested(part.body, ast.Continue)], [], names, number)
    last = [*rewriter.every(first), ast.Expr(_method(loop, "stop")), ast.Continue()]
    body = [*rewriter.every(first), *_recorded(rewriter, loop, names, last), *rewriter.every(part.body)]
    if not first:
        body.insert(0, placed(ast.Expr(rule("named", load(number), ast.Constant(number))), part.target))
    over = placed(_method(loop, "over", _items(rewriter, part.iter)), part.iter)
    return [*begin, ast.For(store(number), over, body, rewriter.every(part.orelse))]


def _items(rewriter: Rewriter, part: ast.expr) -> Any:
    """What a loop runs over."""
    if not is_of_items(part):
        return rewriter.rewrite(part)
    assert isinstance(part, ast.Call)
    found = rule("items", rewriter.rewrite(part.func), *(_items(rewriter, each) for each in part.args))
    found.keywords = [ast.keyword(each.arg, rewriter.rewrite(each.value)) for each in part.keywords]
    return found


def is_of_items(part: ast.expr) -> bool:
    """Whether values are numbered, reversed or taken side by side."""
    is_plain = isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    return is_plain and part.func.id in ("enumerate", "reversed", "zip")  # type: ignore[attr-defined]


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


def exit_of(part: ast.For | ast.While) -> ast.If | None:
    """The one way out of ``while True``, or of the trips of a ``for``: an ``if`` among its statements."""
    found = [each for each in part.body if contains(each, LEAVING)]
    leaving = found[0] if len(found) == 1 else None
    if not isinstance(leaving, ast.If) or leaving.orelse or not isinstance(leaving.body[-1], (ast.Break, ast.Return)):
        return None
    if contains(leaving.test, LEAVING) or any(contains(each, LEAVING) for each in leaving.body[:-1]):
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
    selects, deeper = rewriter.selects, 1 if test is None else _DEEPEST
    rewriter.depth, rewriter.selects = rewriter.depth + deeper, True
    statements = [*rewriter.every(first), *advance, *rewriter.every(last)]
    tested = None if test is None else decided(rewriter, test)
    rewriter.depth, rewriter.selects = rewriter.depth - deeper, selects
    after = ast.Tuple(list(map(load, names)), ast.Load())
    needed = frozenset(name for name, is_needed in names.items() if is_needed)
    leaves = isinstance(part, ast.For) or test is not part.test
    told: list[Any] = [tuple(names), needed, number, leaves, (part.lineno, part.end_lineno)]
    asked: Any = ast.Constant(None) if tested is None else load(condition)
    return [
        *([] if tested is None else [of_variables(condition, names, [ast.Return(tested)], step)]),
        of_variables(trip, names, [*statements, ast.Return(after)], step),
        ast.Assign([store(loop)], rule("loop", asked, load(trip), *map(ast.Constant, told))),
    ], loop


def _method(held: str, name: str, *args: Any) -> Any:
    return ast.Call(ast.Attribute(load(held), name, ast.Load()), [*args], [])


def _recorded(rewriter: Rewriter, loop: str, names: Iterable[str], last: list[Any]) -> list[Any]:
    """``if`` the rest was recorded as a loop: take the variables after it, and go on with ``last``."""
    found = rewriter.new("recorded")
    is_there = ast.Compare(load(found), [ast.IsNot()], [ast.Constant(None)])
    return [
        ast.Assign([store(found)], _method(loop, "recorded")),
        ast.If(is_there, [taken(names, load(found)), *last], []),
    ]


def _assigned(rewriter: Rewriter, test: ast.expr, statements: Sequence[ast.stmt]) -> dict[str, bool] | None:
    """The names that trips assign, and whether they are read elsewhere; None if trips may do anything else."""
    inside = [*ast.walk(test), *(each for statement in statements for each in ast.walk(statement))]
    stored = bound_in([ast.Expr(test), *statements])
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
