"""Arrays that come from sizes, spelled in C: loops, and the statement in them that puts an element in place."""

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
from yota.package.c.size_arithmetic import SizeNames, constant, element, shifted, whole
from yota.transform.sizes.evaluation import parsed

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
    """Loops, and the statement in them that puts an element of the array which ``text`` makes in place.

    Elements of triangles are counted by ``at``.

    target: where its memory is.
    shape: its extents in C.
    kind: the dtype of its elements.
    counters: names like those of `COUNTERS` that nothing else has.
    """
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
