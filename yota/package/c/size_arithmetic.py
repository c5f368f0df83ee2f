"""Numbers that come from sizes, and elements of arrays that do: their Python text in another language."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.c.dialect import C
from yota.emit.language import Language
from yota.emit.tree import Assign, Loop
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
_MASKS = {"np.eye": "equal", "np.tri": "less_equal"}
_SHORT = {"np.log": "log", "math.sqrt": "sqrt", "np.cos": "cos", "np.absolute": "absolute"}


class SizeNames(dict[str, str]):
    """What sizes are called in a language."""

    def __init__(self, names: Mapping[str, str], language: Language = C) -> None:
        super().__init__(names)
        self.language = language


def whole(text: str, names: Mapping[str, str]) -> Spelled:
    """An int of sizes, which have ``names`` in C.

    >>> whole("(N*(N - 1)) // 2", {"N": "N"}), whole("3*N**2 + 1", {"N": "n"})
    ('N * (N - 1) / 2', '3 * n * n + 1')
    """
    return _Speller(names).whole(parsed(text))


def real(text: str, names: Mapping[str, str]) -> Spelled:
    """A float of sizes.

    >>> real("float(np.divide(1, N))", {"N": "N"}), real("-math.sqrt(float(2*N))", {"N": "N"})
    ('1.0 / (double)N', '-sqrt((double)(2 * N))')
    """
    return _Speller(names).element(parsed(text), (), _REAL)


def element(text: str, at: Sequence[str], names: Mapping[str, str], kind: np.dtype[Any]) -> Spelled:
    """An element of the array that ``text`` makes, of dtype ``kind``, at counters with the names ``at``."""
    return _Speller(names).element(parsed(text), at, kind)


class _Speller:
    """Writes expressions of sizes that have ``names``; in its methods ``at`` are counters, ``kind`` the dtype."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names
        self.language = names.language if isinstance(names, SizeNames) else C

    def whole(self, tree: ast.expr) -> Spelled:
        if isinstance(tree, ast.Constant) and type(tree.value) is int:
            return Spelled(str(tree.value))
        if isinstance(tree, ast.Name) and tree.id in self.names:
            return Spelled(self.names[tree.id])
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return Spelled(f"-{self.whole(tree.operand).within(UNARY + 1)}", UNARY)
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow) and isinstance(tree.right, ast.Constant):
            count = tree.right.value
            if type(count) is int and 0 < count < 9:
                return Spelled(" * ".join([self.whole(tree.left).within(ATOM)] * count), PRODUCT if count > 1 else ATOM)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and not isinstance(tree.op, ast.Div):
            sign = self.language["quotient"] if isinstance(tree.op, ast.FloorDiv) else ""
            return _joined(self.whole(tree.left), type(tree.op), self.whole(tree.right), sign)
        raise self._unknown(tree)

    def element(self, tree: ast.expr, at: Sequence[str], kind: np.dtype[Any]) -> Spelled:
        """An element of what ``tree`` makes."""
        if isinstance(tree, ast.Call):
            return self._called(tree, at, kind)
        if isinstance(tree, ast.Constant) and isinstance(tree.value, (bool, float)):
            return self.language.literal(tree.value, np.dtype(type(tree.value)))
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return Spelled(f"-{self.element(tree.operand, at, kind).within(ATOM)}", UNARY)
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Div):
            return self._divided(tree.left, tree.right, at, kind)
        if isinstance(tree, ast.BinOp) and type(tree.op) in _SIGNS and (at or not _is_whole(tree)):
            return _joined(self.element(tree.left, at, kind), type(tree.op), self.element(tree.right, at, kind))
        if isinstance(tree, ast.Subscript) and isinstance(tree.slice, (ast.Tuple, ast.Slice, ast.Constant)):
            return self.element(tree.value, _kept(tree.slice, at), kind)
        return self.whole(tree)

    def _called(self, tree: ast.Call, at: Sequence[str], kind: np.dtype[Any]) -> Spelled:
        name, given = ast.unparse(tree.func), tree.args
        if isinstance(tree.func, ast.Attribute) and tree.func.attr == "astype":
            return self.element(tree.func.value, at, kind)
        if isinstance(tree.func, ast.Attribute) and tree.func.attr == "reshape":
            # The number of an element, in the order of memory.
            found = Spelled(at[0])
            for counter, extent in zip(at[1:], given[1:], strict=True):
                found = _joined(_joined(found, ast.Mult, self.whole(extent)), ast.Add, Spelled(counter))
            return self.element(tree.func.value, [found], kind)
        if name == "np.divide":
            return self._divided(given[0], given[1], at, kind)
        if name == "float" or name.startswith("np.float"):
            return self._cast(given[0], _SINGLE if name == "np.float32" else _REAL, at)
        if name.startswith(("np.int", "np.uint")):
            return self.whole(given[0])
        if name in _SHORT:
            return self.language.applied(_SHORT[name], _REAL, self._cast(given[0], _REAL, at))
        return self._one_of(tree, name, at, kind)

    def _one_of(self, tree: ast.Call, name: str, at: Sequence[str], kind: np.dtype[Any]) -> Spelled:
        """An element of the array that a call makes."""
        given = tree.args
        if name in ("np.full", "np.broadcast_to"):
            return self.element(given[1 if name == "np.full" else 0], at, kind)
        if name == "np.arange":
            return self._counted(given, at[0], kind)
        if name == "np.linspace":
            return self._spaced(given, at[0])
        if name in _WINDOWS:
            known = SizeNames({"at": at[0], "size": self.whole(given[0]).within(ATOM)}, self.language)
            return _Speller(known).element(parsed(_WINDOWS[name]), (), kind)
        if name in _MASKS:
            one, other = (self.language.literal(number, _REAL) for number in (1, 0))
            return self._chosen(self._masked(tree, at), one, other)
        if name == "np.where":
            one, other = (self.element(each, at, kind) for each in given[1:])
            return self._chosen(self._condition(given[0], at), one, other)
        raise self._unknown(tree)

    def _chosen(self, condition: Spelled, one: str, other: str) -> Spelled:
        return self.language.applied("where", _REAL, condition, one, other)

    def _condition(self, tree: ast.expr, at: Sequence[str]) -> Spelled:
        """What a choice goes by: where a mask of ones and zeros is 1, or a comparison of whole numbers."""
        if not isinstance(tree, ast.Compare):
            raise self._unknown(tree)
        if isinstance(tree.left, ast.Call) and ast.unparse(tree.left.func) in _MASKS:
            return self._masked(tree.left, at)
        text = self.element(tree.left, at, _WHOLE)
        name = "less" if isinstance(tree.ops[0], ast.Lt) else "equal"
        return self.language.applied(name, _WHOLE, text.within(SUM), self.whole(tree.comparators[0]))

    def _divided(self, above: ast.expr, below: ast.expr, at: Sequence[str], kind: np.dtype[Any]) -> Spelled:
        """A quotient of floats, of whole numbers too."""
        texts = [(self.element(each, at, kind), _is_whole(each)) for each in (above, below)]
        one, other = (self._converted(text, _REAL) if is_whole else text for text, is_whole in texts)
        return _joined(one, ast.Div, other)

    def _converted(self, number: Spelled, kind: np.dtype[Any]) -> Spelled:
        if number.isdigit():
            return self.language.literal(int(number), kind)
        found = self.language.cast(_WHOLE, kind, Spelled(number.within(ATOM)))
        return number if found is None else found

    def _cast(self, tree: ast.expr, kind: np.dtype[Any], at: Sequence[str]) -> Spelled:
        if _is_whole(tree):
            return self._converted(self.whole(tree), kind)
        inner = self.element(tree, at, _REAL)
        found = inner if kind == _REAL else self.language.cast(_REAL, kind, Spelled(inner.within(ATOM)))
        if found is None:
            raise self._unknown(tree)
        return found

    def _counted(self, given: Sequence[ast.expr], counter: str, kind: np.dtype[Any]) -> Spelled:
        number = counter if isinstance(counter, Spelled) else Spelled(counter)
        if kind.kind == "f":
            number = self._converted(number, kind)
        return number if len(given) < 2 else _joined(self.element(given[0], (), kind), ast.Add, number)

    def _spaced(self, given: Sequence[ast.expr], counter: str) -> Spelled:
        """As NumPy computes it: the last one is exact."""
        start, stop = (self.element(each, (), _REAL) for each in given[:2])
        last = Spelled(f"{self.whole(given[2])} - 1", SUM)
        step = f"({stop.within(SUM)} - {start.within(PRODUCT)}) / {self._converted(last, _REAL)}"
        inner = f"{self._converted(Spelled(counter), _REAL)} * ({step})"
        inner += "" if start == self.language.literal(0, _REAL) else f" + {start.within(PRODUCT)}"
        ends = [self.language.applied("equal", _WHOLE, counter, each) for each in ("0", last)]
        return self._chosen(ends[0], start, self._chosen(ends[1], stop, inner))

    def _masked(self, tree: ast.Call, at: Sequence[str]) -> Spelled:
        """Where ``np.eye`` or ``np.tri`` is 1."""
        offset = next((constant(each.value) for each in tree.keywords if each.arg == "k"), 0)
        return self.language.applied(_MASKS[ast.unparse(tree.func)], _WHOLE, at[1], shifted(at[0], offset))

    def _unknown(self, tree: ast.expr) -> CodegenError:
        return CodegenError(
            f"{ast.unparse(tree)} cannot be said in {self.language.name}; pass it as an argument, fix the sizes, or "
            'generate for NumPy (target="numpy")'
        )


def _joined(left: Spelled, sign: type[ast.operator], right: Spelled, text: str = "") -> Spelled:
    level = SUM if sign in (ast.Add, ast.Sub) else PRODUCT
    # Quotients are exact as they stand: nothing may be divided sooner.
    inner = level if sign in (ast.Add, ast.Mult) and "/" not in right else level + 1
    return Spelled(f"{left.within(level)} {text or _SIGNS[sign]} {right.within(inner)}", level)


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


def shifted(counter: str, offset: int) -> str:
    """``counter + offset``."""
    return counter if not offset else f"{counter} {'+' if offset > 0 else '-'} {abs(offset)}"


def constant(tree: ast.expr) -> int:
    """The int that is written out."""
    return int(ast.literal_eval(tree))


COUNTERS = ("row", "column", "layer", "cell")
"""What the counters of axes may be called; that of elements one after another is `at`, a name that is kept free."""


@dataclass(frozen=True, slots=True)
class Triangle:
    """The rows, or the columns, of the elements of one triangle of a square matrix.

    upper: whether it is that above.
    extent: C text of the rows that the matrix has.
    offset: the diagonal that it begins or ends with.
    """

    upper: bool
    extent: str
    offset: int


def triangle(text: str, names: Mapping[str, str]) -> tuple[Triangle, int] | None:
    """The triangle whose rows (0) or columns (1) ``text`` makes; None if it makes something else.

    >>> triangle("np.triu_indices(N, 1)[0]", {"N": "n"})
    (Triangle(upper=True, extent='n', offset=1), 0)
    """
    tree = parsed(text)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "astype":
        tree = tree.func.value
    if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Call):
        name = ast.unparse(tree.value.func)
        if name in ("np.triu_indices", "np.tril_indices"):
            extent, offset = tree.value.args
            found = Triangle(name == "np.triu_indices", str(whole(ast.unparse(extent), names)), constant(offset))
            return found, constant(tree.slice)
    return None


def filling(
    text: str, target: str, shape: Sequence[str], kind: np.dtype[Any], names: SizeNames, counters: Sequence[str]
) -> tuple[tuple[Loop, ...], Assign]:
    """Loops, and the statement in them that puts an element of the array which ``text`` makes in place."""
    found = triangle(text, names)
    if found is not None:
        corner, part = found
        return _triangular(corner, counters, names.language), Assign(
            names.language.element(target, "at"), counters[part]
        )
    refuse_more_axes(shape, names.language)
    own = counters[: len(shape)]
    value = element(text, own, names, kind)
    place = own[0]
    for counter, extent in zip(own[1:], shape[1:], strict=True):
        place = f"{f'({place})' if ' ' in place else place} * {factor(extent)} + {counter}"
    loops = tuple(Loop(each, "0", end, ()) for each, end in zip(own, shape, strict=True))
    return loops, Assign(names.language.element(target, place), value)


def refuse_more_axes(shape: Sequence[str], language: Language = C) -> None:
    """Raise if there are not enough counters for the axes of an array."""
    if len(shape) > len(COUNTERS):
        raise CodegenError(
            f"an array of {len(shape)} axes that depends on sizes cannot be made in {language.name}; pass it"
        )


def factor(text: str) -> str:
    """``text`` where it is multiplied."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _triangular(corner: Triangle, counters: Sequence[str], language: Language) -> tuple[Loop, Loop]:
    row, column = counters[:2]
    extent, offset = corner.extent, corner.offset
    first, end = "0", extent
    if corner.upper:
        edge = shifted(row, offset)
        first = edge if offset >= 0 else language.larger(edge, "0")
    else:
        edge = shifted(row, offset + 1)
        end = edge if offset <= 0 else f"({language.smaller(edge, extent)})"
    return Loop(row, "0", extent, ()), Loop(column, first, end, ())
