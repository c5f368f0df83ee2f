"""Numbers that a function compares: where it branches on a size, it does so around one of them."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, TypeVar

__all__ = ["Threshold", "noting", "thresholds"]

_T = TypeVar("_T")
_LARGEST = 10**9
_FOREIGN = {*sys.stdlib_module_names, "numpy", "scipy", "yota"}
_SIZES = ("shape", "size", "ndim", "nbytes")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A number in a comparison.

    Parameters
    ----------
    number
        The number.
    place
        Function, line and text.
    of_size
        Whether what is compared with it is certain to be a size.
    """

    number: int
    place: str
    of_size: bool


def noting(run: Callable[[], _T]) -> tuple[_T, dict[CodeType, Mapping[str, Any]]]:
    """What ``run`` gives, and the user's functions that it went through, with their global names."""
    found: dict[CodeType, Mapping[str, Any]] = {}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        module = str(frame.f_globals.get("__name__", ""))
        if event == "call" and module.partition(".")[0] not in _FOREIGN:
            found.setdefault(frame.f_code, frame.f_globals)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return run(), found
    finally:
        sys.setprofile(before)


def thresholds(functions: Mapping[CodeType, Mapping[str, Any]]) -> list[Threshold]:
    """Numbers that functions compare, each once, in order."""
    found: dict[int, Threshold] = {}
    for code, names in functions.items():
        for each in _of(code, names):
            known = found.get(each.number)
            if known is None or (each.of_size and not known.of_size):
                found[each.number] = each
    return [found[number] for number in sorted(found)]


def _of(code: CodeType, names: Mapping[str, Any]) -> Iterator[Threshold]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    assigned = {
        each.targets[0].id: each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Compare):
            parts = [each.left, *each.comparators]
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in ("min", "max"):
            parts = list(each.args)
        else:
            continue
        numbers = {_number(part, names, assigned) for part in parts} - {None}
        of_size = any(_is_size(part, assigned) for part in parts)
        place = f"{code.co_name}, line {code.co_firstlineno + each.lineno - 1}: `{ast.unparse(each)[:80]}`"
        for number in numbers:
            if number is not None and 0 < number <= _LARGEST:
                yield Threshold(number, place, of_size)


def _number(tree: ast.expr, names: Mapping[str, Any], assigned: Mapping[str, ast.expr], depth: int = 0) -> int | None:
    """The whole number that an expression is for certain."""
    if depth > 8:
        return None
    if isinstance(tree, ast.Name):
        if tree.id in assigned:
            return _number(assigned[tree.id], names, {}, depth + 1)
        value = names.get(tree.id)
    elif isinstance(tree, ast.Constant):
        value = tree.value
    elif isinstance(tree, ast.BinOp):
        one, other = (_number(part, names, assigned, depth + 1) for part in (tree.left, tree.right))
        return None if one is None or other is None else _combined(tree.op, one, other)
    else:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST <= value <= _LARGEST:
        return None
    return int(value)


def _combined(sign: ast.operator, one: int, other: int) -> int | None:
    if isinstance(sign, ast.Mult):
        return one * other
    if isinstance(sign, ast.Add):
        return one + other
    if isinstance(sign, ast.Sub):
        return one - other
    if isinstance(sign, ast.Pow) and 0 <= other <= 64 and abs(one) <= 1024:
        return min(int(one**other), _LARGEST + 1)
    return one << other if isinstance(sign, ast.LShift) and 0 <= other < 40 else None


def _is_size(tree: ast.expr, assigned: Mapping[str, ast.expr]) -> bool:
    """Whether an expression is made of ``len(...)``, ``.shape`` or ``.size``."""
    if isinstance(tree, ast.Name) and tree.id in assigned:
        return _is_size(assigned[tree.id], {})
    return any(
        (isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "len")
        or (isinstance(part, ast.Attribute) and part.attr in _SIZES)
        for part in ast.walk(tree)
    )
