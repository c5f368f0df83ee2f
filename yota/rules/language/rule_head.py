"""The head of a rule: its decorator, its parameters and the sets that they range over."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

from yota.rules.language.expressions import CONSTANTS, ExpressionReader
from yota.rules.language.model import Domain, Expression, Literal, Parameter
from yota.rules.language.rule_text import Source

_KINDS = ("elementwise", "implicit", "tensor", "linear", "nodiff")
SOLVE = ("dense", "sparse", "gmres")
"""How the linear system of the adjoint of an ``@implicit`` rule for arrays is solved."""
_DECORATORS = ", ".join(f'@{kind}("module.function")' for kind in _KINDS[:-1]) + f' or @{_KINDS[-1]}("module.function")'
_DOMAINS = (
    "Real, Real(low, high), Complex, Integer, Integer(low, high), Boolean, Array, Array[..., m, 3], RealArray or Static"
)
_SIMPLE: dict[str, Any] = {
    "Real": Domain("real"),
    "Complex": Domain("complex"),
    "Integer": Domain("integer"),
    "Boolean": Domain("boolean"),
    "Array": Domain("array"),
    "RealArray": Domain("array", is_real=True),
}
_LARGEST_EXTENT = 10**9
_TARGET = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def read_decorator(source: Source, tree: ast.FunctionDef) -> tuple[Any, str | None, str]:
    """Kind and target of the rule, and how the adjoint's linear system is solved."""
    if len(tree.decorator_list) != 1:
        what = "a rule has one decorator"
        raise source.fault(tree, what, found=f"{len(tree.decorator_list)} decorators", write=_DECORATORS)
    decorator = tree.decorator_list[0]
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    if not isinstance(name, ast.Name) or name.id not in _KINDS:
        what = "the decorator says what kind of rule this is"
        raise source.fault(decorator, what, found=f"@{source.excerpt(decorator)}", write=_DECORATORS)
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    if keywords and name.id == "implicit":
        return name.id, _read_target(source, decorator, name.id, tree.name), _read_solve(source, tree, keywords)
    return name.id, _read_target(source, decorator, name.id, tree.name), ""


def _read_solve(source: Source, tree: ast.FunctionDef, keywords: list[ast.keyword]) -> str:
    known = {each.arg: getattr(each.value, "value", None) for each in keywords}
    if list(known) != ["solve"] or known["solve"] not in SOLVE:
        what = f"the keyword of @implicit is solve, and one of {', '.join(map(repr, SOLVE))}"
        write = f'@implicit("module.{tree.name}", solve="{SOLVE[0]}")'
        raise source.fault(keywords[0].value, what, found=ast.unparse(keywords[0]), write=write)
    return str(known["solve"])


def _read_target(source: Source, decorator: ast.expr, kind: str, name: str) -> str | None:
    if not isinstance(decorator, ast.Call):
        return None
    arguments = decorator.args
    value = arguments[0].value if len(arguments) == 1 and isinstance(arguments[0], ast.Constant) else None
    if (decorator.keywords and kind != "implicit") or not isinstance(value, str) or not _TARGET.fullmatch(value):
        what = "the target is one dotted name in quotes"
        raise source.fault(decorator, what, found=f"@{source.excerpt(decorator)}", write=f'@{kind}("module.{name}")')
    return value


def read_results(source: Source, tree: ast.FunctionDef) -> tuple[str, ...]:
    """Names of the results."""
    returns = tree.returns
    if isinstance(returns, ast.Name):
        return (returns.id,)
    if isinstance(returns, ast.Tuple) and returns.elts and all(isinstance(each, ast.Name) for each in returns.elts):
        return tuple(each.id for each in returns.elts if isinstance(each, ast.Name))
    raise source.fault(
        returns or tree,
        "the result has no name",
        found=f"-> {source.excerpt(returns)}" if returns else "no `->`",
        write=f"def {tree.name}(...) -> y:",
    )


def read_parameters(source: Source, tree: ast.FunctionDef) -> tuple[Parameter, ...]:
    """Operands, then static keywords."""
    arguments = tree.args
    if arguments.posonlyargs or arguments.kwarg:
        what = "`/` and `**` are not part of the rule language"
        write = f"def {tree.name}(x: Array, *, axis: Static = None) -> y:"
        raise source.fault(arguments.kwarg or arguments.posonlyargs[0], what, write=write)
    defaults = [None] * (len(arguments.args) - len(arguments.defaults)) + list(arguments.defaults)
    operands = [
        _read_operand(source, tree.name, each, False, default)
        for each, default in zip(arguments.args, defaults, strict=True)
    ]
    if arguments.vararg:
        if arguments.defaults:
            what = f"an operand ahead of `*{arguments.vararg.arg}` has no default"
            write = f"def {tree.name}(x: Array, *{arguments.vararg.arg}: Array) -> y:"
            raise source.fault(arguments.defaults[0], what, write=write)
        operands.append(_read_operand(source, tree.name, arguments.vararg, True))
    keywords = [
        _read_keyword(source, each, default)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return (*operands, *keywords)


def _read_operand(
    source: Source, function: str, tree: ast.arg, variadic: bool, default: ast.expr | None = None
) -> Parameter:
    domain = _read_domain(source, tree)
    if domain is None:
        raise source.fault(
            tree, "a static parameter stands after `*`", write=f"def {function}(x: Array, *, {tree.arg}: Static) -> y:"
        )
    value = None if default is None else ExpressionReader(source).read(default)
    if value is not None and not (isinstance(value, Literal) and type(value.value) in (int, float)):
        what = "the default of an operand is a number"
        write = f"{tree.arg}: Real = 1.0"
        raise source.fault(default or tree, what, found=source.excerpt(default) if default else "", write=write)
    parameter: Parameter = source.mark(Parameter(tree.arg, domain, value, variadic), tree)
    return parameter


def _read_keyword(source: Source, tree: ast.arg, default: ast.expr | None) -> Parameter:
    if _read_domain(source, tree) is not None:
        raise source.fault(tree, "what stands after `*` is static", write=f"{tree.arg}: Static = None")
    value: Expression | None = None
    if default is not None:
        value = ExpressionReader(source).read(default)
        if not isinstance(value, Literal):
            what = "a default is a number, a string, True, False, None or a tuple of these"
            raise source.fault(default, what, write=f"{tree.arg}: Static = None")
    parameter: Parameter = source.mark(Parameter(tree.arg, None, value), tree)
    return parameter


def _read_domain(source: Source, tree: ast.arg) -> Domain | None:
    annotation = tree.annotation
    if isinstance(annotation, ast.Name):
        if annotation.id == "Static":
            return None
        if annotation.id in _SIMPLE:
            return _SIMPLE[annotation.id]  # type: ignore[no-any-return]
    name = getattr(annotation.func, "id", "") if isinstance(annotation, ast.Call) else ""
    bounds = annotation.args if isinstance(annotation, ast.Call) and not annotation.keywords else []
    if name in ("Real", "Integer") and len(bounds) == 2:
        low, high = (_read_bound(source, each) for each in bounds)
        return Domain("real" if name == "Real" else "integer", low, high)
    array = getattr(annotation.value, "id", "") if isinstance(annotation, ast.Subscript) else ""
    if isinstance(annotation, ast.Subscript) and array in ("Array", "RealArray"):
        dimensions = _read_dimensions(source, annotation.slice)
        return Domain("array", dimensions=dimensions, is_real=array == "RealArray")
    raise source.fault(
        annotation or tree,
        f"the annotation of `{tree.arg}` names no set",
        found=source.excerpt(annotation) if annotation else "no annotation",
        write=f"{tree.arg}: Real    # one of {_DOMAINS}",
    )


def _read_bound(source: Source, tree: ast.expr) -> float:
    """A number, ``pi`` or ``oo``, perhaps with a sign, perhaps divided by a number."""
    value = _number(tree)
    if value is None or math.isnan(value):
        raise source.fault(tree, "a bound is a number, pi or oo", write="Real(0, oo)")
    return value


def _number(tree: ast.expr, depth: int = 0) -> float | None:
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)) and abs(tree.value) <= 1e300:
        return float(tree.value)
    if isinstance(tree, ast.Name):
        return CONSTANTS.get(tree.id)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub) and depth < 4:
        value = _number(tree.operand, depth + 1)
        return None if value is None else -value
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, (ast.Div, ast.Mult)) and depth < 4:
        left, right = _number(tree.left, depth + 1), _number(tree.right, depth + 1)
        if left is None or right is None or (isinstance(tree.op, ast.Div) and not right):
            return None
        return left / right if isinstance(tree.op, ast.Div) else left * right
    return None


def _read_dimensions(source: Source, tree: ast.expr) -> tuple[str | int, ...]:
    entries = tree.elts if isinstance(tree, ast.Tuple) else [tree]
    names: list[str | int] = []
    for position, entry in enumerate(entries):
        if isinstance(entry, ast.Constant) and entry.value is Ellipsis and not position:
            names.append("...")
        elif isinstance(entry, ast.Name):
            names.append(entry.id)
        elif isinstance(entry, ast.Constant) and type(entry.value) is int and entry.value <= _LARGEST_EXTENT:
            names.append(entry.value)
        else:
            raise source.fault(
                entry, "a dimension is a name or an extent; `...` may come first", write="Array[..., m, 3]"
            )
    return tuple(names)
