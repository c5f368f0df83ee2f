"""Numbers that come from sizes, and elements of arrays that do: their Python text in another language."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.emit.c.dialect import C
from yota.emit.language import Language
from yota.errors import CodegenError
from yota.ir.extents import ATOM, PRODUCT, SUM, UNARY, Spelled
from yota.transform.sizes.evaluation import parsed

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Div: "/", ast.Mod: "%"}
_ANGLE = "3.141592653589793 * float(2 * at + 1 - size) / float(size - 1)"
_WINDOWS = {
    "np.hanning": f"np.where(size == 1, 1.0, 0.5 + 0.5 * np.cos({_ANGLE}))",
    "np.hamming": f"np.where(size == 1, 1.0, 0.54 + 0.46 * np.cos({_ANGLE}))",
    "np.blackman": f"np.where(size == 1, 1.0, 0.42 + 0.5 * np.cos({_ANGLE})"
    f" + 0.08 * np.cos({_ANGLE.replace('3.141592653589793', '6.283185307179586')}))",
    "np.bartlett": "np.where(size == 1, 1.0, 1.0 - np.absolute(float(2 * at + 1 - size) / float(size - 1)))",
    "np.fft.fftfreq": "np.where(2 * at < size, float(at), float(at - size)) * (1.0 / float(size))",
    "np.fft.rfftfreq": "float(at) * (1.0 / float(size))",
}
"""The element number ``at`` of an array."""
_WHOLE, _REAL, _SINGLE = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.float32)
_SHORT = {"np.log": "log", "math.sqrt": "sqrt", "np.cos": "cos", "np.absolute": "absolute"}


class SizeNames(dict[str, str]):
    """What sizes are called in a language."""

    def __init__(self, names: Mapping[str, str], language: Language = C) -> None:
        super().__init__(names)
        self.language = language


def _language(names: Mapping[str, str]) -> Language:
    return names.language if isinstance(names, SizeNames) else C


def whole(text: str, names: Mapping[str, str]) -> Spelled:
    """An int of sizes, which have ``names`` in C.

    >>> whole("(N*(N - 1)) // 2", {"N": "N"}), whole("3*N**2 + 1", {"N": "n"})
    ('N * (N - 1) / 2', '3 * n * n + 1')
    """
    return _whole(parsed(text), names)


def real(text: str, names: Mapping[str, str]) -> Spelled:
    """A float of sizes.

    >>> real("float(np.divide(1, N))", {"N": "N"}), real("-math.sqrt(float(2*N))", {"N": "N"})
    ('1.0 / (double)N', '-sqrt((double)(2 * N))')
    """
    return _element(parsed(text), (), names, _REAL)


def element(text: str, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    """An element of the array that ``text`` makes, of dtype ``kind``, at counters with the names ``at``."""
    return _element(parsed(text), at, names, kind)


def _whole(tree: ast.expr, names: Mapping[str, str]) -> Spelled:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return Spelled(str(tree.value))
    if isinstance(tree, ast.Name) and tree.id in names:
        return Spelled(names[tree.id])
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return Spelled(f"-{_whole(tree.operand, names).within(UNARY + 1)}", UNARY)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
        count = tree.right.value
        if type(count) is int and 0 < count < 9:
            return Spelled(" * ".join([_whole(tree.left, names).within(ATOM)] * count), PRODUCT if count > 1 else ATOM)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and not isinstance(tree.op, ast.Div):
        sign = _language(names)["quotient"] if isinstance(tree.op, ast.FloorDiv) else ""
        return _joined(_whole(tree.left, names), type(tree.op), _whole(tree.right, names), sign)
    raise _unknown(tree, names)


def _joined(left: Spelled, sign: type[ast.operator], right: Spelled, text: str = "") -> Spelled:
    level = SUM if sign in (ast.Add, ast.Sub) else PRODUCT
    # Quotients are exact as they stand: nothing may be divided sooner.
    inner = level if sign in (ast.Add, ast.Mult) and "/" not in right else level + 1
    return Spelled(f"{left.within(level)} {text or _SIGNS[sign]} {right.within(inner)}", level)


def _element(tree: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    """An element of what ``tree`` makes, at the counters ``at``."""
    if isinstance(tree, ast.Call):
        return _called(tree, at, names, kind)
    if isinstance(tree, ast.Constant) and isinstance(tree.value, bool):
        return _language(names).literal(tree.value, np.dtype(bool))
    if isinstance(tree, ast.Constant) and isinstance(tree.value, float):
        return _language(names).literal(tree.value, _REAL)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return Spelled(f"-{_element(tree.operand, at, names, kind).within(ATOM)}", UNARY)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
        return _divided(tree.left, tree.right, at, names, kind)
    if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and (at or not _is_whole(tree)):
        return _joined(_element(tree.left, at, names, kind), type(tree.op), _element(tree.right, at, names, kind))
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, (ast.Tuple, ast.Slice, ast.Constant)):
        return _element(tree.value, _kept(tree.slice, at), names, kind)
    return _whole(tree, names)


def _is_whole(tree: ast.expr) -> bool:
    return not any(
        isinstance(part, (ast.Call, ast.Div)) or (isinstance(part, ast.Constant) and isinstance(part.value, float))
        for part in ast.walk(tree)
    )


def _kept(index: ast.expr, at: Sequence[str]) -> tuple[str, ...]:
    """Counters of the axes that ``index`` does not put in."""
    entries = index.elts if isinstance(index, ast.Tuple) else [index]
    fresh = [isinstance(entry, ast.Constant) and entry.value is None for entry in entries]
    return tuple(counter for place, counter in enumerate(at) if place >= len(fresh) or not fresh[place])


def _called(tree: ast.Call, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    name = ast.unparse(tree.func)
    if isinstance(tree.func, ast.Attribute) and tree.func.attr == "astype":
        return _element(tree.func.value, at, names, kind)
    if isinstance(tree.func, ast.Attribute) and tree.func.attr == "reshape":
        return _element(tree.func.value, [_counted_through(at, tree.args, names)], names, kind)
    given = tree.args
    if name == "np.divide":
        return _divided(given[0], given[1], at, names, kind)
    if name == "float" or name.startswith("np.float"):
        return _cast(given[0], _SINGLE if name == "np.float32" else _REAL, at, names)
    if name.startswith(("np.int", "np.uint")):
        return _whole(given[0], names)
    if name in _SHORT:
        return _language(names).applied(_SHORT[name], _REAL, _cast(given[0], _REAL, at, names))
    return _one_of(tree, name, at, names, kind)


def _one_of(tree: ast.Call, name: str, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    """An element of the array that a call makes."""
    given = tree.args
    if name in ("np.full", "np.broadcast_to"):
        return _element(given[1 if name == "np.full" else 0], at, names, kind)
    if name == "np.arange":
        return _counted(given, at[0], names, kind)
    if name == "np.linspace":
        return _spaced(given, at[0], names)
    if name in _WINDOWS:
        known = SizeNames({"at": at[0], "size": _whole(given[0], names).within(ATOM)}, _language(names))
        return _element(parsed(_WINDOWS[name]), (), known, kind)
    if name in ("np.eye", "np.tri"):
        language = _language(names)
        return _chosen(_masked(tree, at, names), language.literal(1, _REAL), language.literal(0, _REAL), names)
    if name == "np.where":
        one, other = (_element(each, at, names, kind) for each in given[1:])
        return _chosen(_condition(given[0], at, names, kind), one, other, names)
    raise _unknown(tree, names)


def _chosen(condition: Spelled, one: str, other: str, names: Mapping[str, str]) -> Spelled:
    return _language(names).applied("where", _REAL, condition, one, other)


def _condition(tree: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    """What a choice goes by: a mask of ones and zeros, or a comparison of whole numbers."""
    mask = _mask(tree.left if isinstance(tree, ast.Compare) else tree, at, names)
    if mask is not None or not isinstance(tree, ast.Compare):
        return mask if mask is not None else _element(tree, at, names, kind)
    text = _element(tree.left, at, names, _WHOLE)
    name = "less" if isinstance(tree.ops[0], ast.Lt) else "equal"
    return _language(names).applied(name, _WHOLE, text.within(SUM), _whole(tree.comparators[0], names))


def _mask(tree: ast.expr, at: Sequence[str], names: Mapping[str, str]) -> Spelled | None:
    """Where a mask that NumPy has a function for is true."""
    while isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "astype":
        tree = tree.func.value
    known = isinstance(tree, ast.Call) and ast.unparse(tree.func) in ("np.eye", "np.tri")
    return _masked(tree, at, names) if known and isinstance(tree, ast.Call) else None


def _divided(
    above: ast.expr, below: ast.expr, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]
) -> Spelled:
    """A quotient of floats, of whole numbers too."""
    parts = []
    for each in (above, below):
        text = _element(each, at, names, kind)
        parts.append(_converted(text, _REAL, names) if _is_whole(each) else text)
    return _joined(parts[0], ast.Div, parts[1])


def _converted(number: Spelled, kind: np.dtype[Any], names: Mapping[str, str]) -> Spelled:
    """A whole number in another dtype."""
    if number.isdigit():
        return _language(names).literal(int(number), kind)
    found = _language(names).cast(_WHOLE, kind, Spelled(number.within(ATOM)))
    return number if found is None else found


def _cast(tree: ast.expr, kind: np.dtype[Any], at: Sequence[str], names: Mapping[str, str]) -> Spelled:
    if _is_whole(tree):
        return _converted(_whole(tree, names), kind, names)
    inner = _element(tree, at, names, _REAL)
    found = inner if kind == _REAL else _language(names).cast(_REAL, kind, Spelled(inner.within(ATOM)))
    if found is None:
        raise _unknown(tree, names)
    return found


def _counted_through(at: Sequence[str], shape: Sequence[ast.expr], names: Mapping[str, str]) -> Spelled:
    """The number of an element, in the order of memory."""
    found = Spelled(at[0])
    for counter, extent in zip(at[1:], shape[1:], strict=True):
        found = _joined(_joined(found, ast.Mult, _whole(extent, names)), ast.Add, Spelled(counter))
    return found


def _counted(given: Sequence[ast.expr], counter: str, names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    number = counter if isinstance(counter, Spelled) else Spelled(counter)
    if kind.kind == "f":
        number = _converted(number, kind, names)
    if len(given) < 2:
        return number
    return _joined(_element(given[0], (), names, kind), ast.Add, number)


def _spaced(given: Sequence[ast.expr], counter: str, names: Mapping[str, str]) -> Spelled:
    """As NumPy computes it: the last one is exact."""
    language = _language(names)
    start, stop = (_element(each, (), names, _REAL) for each in given[:2])
    count = _whole(given[2], names)
    last = Spelled(f"{count} - 1", SUM)
    step = f"({stop.within(SUM)} - {start.within(PRODUCT)}) / {_converted(last, _REAL, names)}"
    inner = f"{_converted(Spelled(counter), _REAL, names)} * ({step})"
    inner += "" if start == language.literal(0, _REAL) else f" + {start.within(PRODUCT)}"
    ends = [language.applied("equal", _WHOLE, counter, each) for each in ("0", last)]
    return _chosen(ends[0], start, _chosen(ends[1], stop, inner, names), names)


def _masked(tree: ast.Call, at: Sequence[str], names: Mapping[str, str]) -> Spelled:
    """Where ``np.eye`` or ``np.tri`` is 1."""
    offset = next((constant(each.value) for each in tree.keywords if each.arg == "k"), 0)
    name = "equal" if ast.unparse(tree.func) == "np.eye" else "less_equal"
    return _language(names).applied(name, _WHOLE, at[1], shifted(at[0], offset))


def shifted(counter: str, offset: int) -> str:
    """``counter + offset``."""
    return counter if not offset else f"{counter} {'+' if offset > 0 else '-'} {abs(offset)}"


def constant(tree: ast.expr) -> int:
    """The int that is written out."""
    return int(ast.literal_eval(tree))


def _unknown(tree: ast.expr, names: Mapping[str, str]) -> CodegenError:
    return CodegenError(
        f"{ast.unparse(tree)} cannot be said in {_language(names).name}; pass it as an argument, fix the sizes, or "
        'generate for NumPy (target="numpy")'
    )
