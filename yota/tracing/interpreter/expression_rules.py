"""What expressions evaluate to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import Activation, Stopped, evaluate, evaluates
from yota.tracing.interpreter.builtin import IN_PLACE
from yota.tracing.interpreter.call_rules import call, ready
from yota.tracing.interpreter.definition import define, is_readable
from yota.tracing.interpreter.effects import is_own, made
from yota.tracing.interpreter.interpreted_bodies import make
from yota.tracing.patch_targets import attribute as attribute_of
from yota.tracing.traced_text import joined, texts_in

_CONVERSIONS: dict[int, Any] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


evaluates(ast.Constant)(lambda activation, part: part.value)


@evaluates(ast.Name)
def _name(activation: Activation, part: ast.Name) -> Any:
    activation.part = part
    return activation.load(part.id)


@evaluates(ast.NamedExpr)
def _named(activation: Activation, part: ast.NamedExpr) -> Any:
    value = evaluate(activation, part.value)
    activation.function().store(part.target.id, value)
    return value


@evaluates(ast.BinOp)
def _binary(activation: Activation, part: ast.BinOp) -> Any:
    left, right = evaluate(activation, part.left), evaluate(activation, part.right)
    activation.part = part
    return operators.binary(type(part.op), left, right)


@evaluates(ast.UnaryOp)
def _unary(activation: Activation, part: ast.UnaryOp) -> Any:
    if isinstance(part.op, ast.Not):
        return not is_true(activation, part.operand)
    value = evaluate(activation, part.operand)
    activation.part = part
    return operators.unary(type(part.op), value)


@evaluates(ast.Compare)
def _compare(activation: Activation, part: ast.Compare) -> Any:
    result: Any = None
    for number, result in enumerate(_comparisons(activation, part), start=1):
        if number == len(part.ops) or not operators.truth(result):
            break
    return result


def _comparisons(activation: Activation, part: ast.Compare) -> Iterator[Any]:
    """The results of ``a < b < c``, one by one."""
    left = evaluate(activation, part.left)
    for kind, each in zip(part.ops, part.comparators, strict=True):
        right = evaluate(activation, each)
        activation.part = part
        yield operators.compare(type(kind), left, right)
        left = right


def is_true(activation: Activation, part: ast.expr) -> bool:
    """Whether an expression counts as true; a guard that names the expression.

    As in Python, each part is asked once: that ``a`` in ``if a or b`` counts as true decides, and nobody asks again.
    """
    if isinstance(part, ast.BoolOp):
        wanted = isinstance(part.op, ast.Or)
        return wanted if any(is_true(activation, each) is wanted for each in part.values) else not wanted
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
        return not is_true(activation, part.operand)
    if isinstance(part, ast.Compare):
        return all(map(operators.truth, _comparisons(activation, part)))
    value = evaluate(activation, part)
    activation.part = part
    return operators.truth(value)


@evaluates(ast.BoolOp)
def _boolean(activation: Activation, part: ast.BoolOp) -> Any:
    for each in part.values[:-1]:
        value = evaluate(activation, each)
        activation.part = each
        if operators.truth(value) is isinstance(part.op, ast.Or):
            return value
    return evaluate(activation, part.values[-1])


@evaluates(ast.IfExp)
def _conditional(activation: Activation, part: ast.IfExp) -> Any:
    return evaluate(activation, part.body if is_true(activation, part.test) else part.orelse)


@evaluates(ast.Attribute)
def _attribute(activation: Activation, part: ast.Attribute) -> Any:
    value = evaluate(activation, part.value)
    activation.part = part
    return attribute(value, activation.definition.mangled(part.attr))


def attribute(value: Any, name: str) -> Any:
    """``value.name``; a property of a class of the user's runs from its source."""
    for base in type(value).__mro__:
        found = vars(base).get(name)
        if found is not None:
            if isinstance(found, property) and is_readable(found.fget):
                return call(found.fget, (value,), {})
            break
    ready(value)
    found = attribute_of(value, name)
    if name == "__dict__" and is_own(value):
        made(found)
    return found


@evaluates(ast.Subscript)
def _subscript(activation: Activation, part: ast.Subscript) -> Any:
    value, index = evaluate(activation, part.value), evaluate(activation, part.slice)
    activation.part = part
    return operators.item(value, index)


@evaluates(ast.Slice)
def _slice(activation: Activation, part: ast.Slice) -> slice:
    bounds = (part.lower, part.upper, part.step)
    return slice(*(None if each is None else evaluate(activation, each) for each in bounds))


def _items(activation: Activation, parts: list[ast.expr]) -> list[Any]:
    found: list[Any] = []
    for part in parts:
        if isinstance(part, ast.Starred):
            found.extend(operators.iterate(evaluate(activation, part.value)))
        else:
            found.append(evaluate(activation, part))
    return found


evaluates(ast.List)(lambda activation, part: made(_items(activation, part.elts)))
evaluates(ast.Tuple)(lambda activation, part: tuple(_items(activation, part.elts)))


@evaluates(ast.Set)
def _set(activation: Activation, part: ast.Set) -> Any:
    found = _items(activation, part.elts)
    activation.part = part
    return made(set(found))


@evaluates(ast.Dict)
def _dict(activation: Activation, part: ast.Dict) -> Any:
    found: dict[Any, Any] = made({})
    for key, value in zip(part.keys, part.values, strict=True):
        if key is None:
            found.update(evaluate(activation, value))
        else:
            name = evaluate(activation, key)
            activation.part = key
            found[name] = evaluate(activation, value)
    return found


@evaluates(ast.Call)
def _call(activation: Activation, part: ast.Call) -> Any:
    function = activation.callees[part] = evaluate(activation, part.func)
    args = tuple(_items(activation, part.args))
    keywords: dict[str, Any] = {}
    for each in part.keywords:
        value = evaluate(activation, each.value)
        given = {each.arg: value} if each.arg is not None else dict(value)
        for name in given:
            if name in keywords:
                raise TypeError(f"got multiple values for keyword argument '{name}'")
        keywords.update(given)
    activation.part = part
    is_hashable = isinstance(function, type) or type(function).__name__ == "builtin_function_or_method"
    in_place = IN_PLACE.get(function) if is_hashable else None
    try:
        return call(function, args, keywords) if in_place is None else in_place(activation, part, args)
    except StopIteration as fault:
        raise Stopped(fault) from None


@evaluates(ast.Lambda)
def function_of(activation: Activation, tree: ast.FunctionDef | ast.Lambda) -> Any:
    """The function that a definition inside of an interpreted one makes."""
    name = tree.name if isinstance(tree, ast.FunctionDef) else "<lambda>"
    within = activation.definition
    definition = define(tree, within.filename, f"{within.qualified}.<locals>.{name}", within.owner)
    defaults = tuple(evaluate(activation, each) for each in tree.args.defaults)
    pairs = zip(tree.args.kwonlyargs, tree.args.kw_defaults, strict=True)
    keyword_defaults = {
        definition.mangled(each.arg): evaluate(activation, value) for each, value in pairs if value is not None
    }
    return make(definition, activation, defaults, keyword_defaults)


def decorated(activation: Activation, part: ast.FunctionDef | ast.ClassDef, make: Callable[[], Any]) -> None:
    """Store what ``make`` gives, after the decorators of its definition, which are evaluated first."""
    decorators = [evaluate(activation, each) for each in part.decorator_list]
    made = make()
    for decorate, place in zip(reversed(decorators), reversed(part.decorator_list), strict=True):
        activation.part = place
        made = call(decorate, (made,), {})
    activation.store(part.name, made)


@evaluates(ast.JoinedStr)
def _joined(activation: Activation, part: ast.JoinedStr) -> str:
    parts = [evaluate(activation, each) for each in part.values]
    found: str = joined("".join(parts), texts_in(parts))
    return found


@evaluates(ast.FormattedValue)
def _formatted(activation: Activation, part: ast.FormattedValue) -> str:
    value = evaluate(activation, part.value)
    specification = "" if part.format_spec is None else evaluate(activation, part.format_spec)
    activation.part = part
    ready(value)
    converted: Any = _CONVERSIONS[part.conversion](value)
    found: str = joined(format(converted, specification), texts_in([converted, specification]))
    return found
