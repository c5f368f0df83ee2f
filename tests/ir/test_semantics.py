"""The table of semantics says what NumPy does; few places ask for a primitive by its name."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from yota.ir.access_maps import carried_axis, letters, pieces
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, Slice, pattern_shape, to_numpy
from yota.ir.primitive import BINARY
from yota.ir.semantics import CONTRACTIONS, JOINS, MOVES, VIEWS, AccessMap, Positions
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import type_of
from yota.optimize.array_writes import shares
from yota.rules.proof.cases import CASES
from yota.rules.proof.cases import CONTRACTIONS as SUBSCRIPTS
from yota.transform.sparse.element_maps import Known, Link, Pairs, link

PACKAGE = Path(__file__).parents[2] / "yota"
MOST = 28
"""Comparisons with a primitive's name: whoever removes one lowers the number."""
EXACT = {*MOVES, *CONTRACTIONS, AccessMap.SCATTER, AccessMap.DEPOSIT, AccessMap.ELEMENTWISE, AccessMap.REDUCTION}
"""Maps that say of no element more than it takes part in, but for functions that choose, or multiply by zero."""
MORE = [
    *(("einsum", tuple(np.ones(shape) for shape in shapes), {"subscripts": text}) for text, shapes in SUBSCRIPTS),
    ("matmul", (np.ones((2, 1, 2, 3)), np.ones((4, 3, 2))), {}),
    ("deposit", (np.ones(4), np.ones(2), np.array([3, 3])), {"indices": ((GATHER,),)}),
    ("broadcast_to", (np.ones((3, 1)),), {"shape": (3, 3, 4)}),
    ("transpose", (np.ones((2, 3, 4)),), {"axes": (1, 2, 0)}),
    ("reshape", (np.ones((4, 6)),), {"shape": (4, 2, 3)}),
    ("reshape", (np.ones((2, 2, 3)),), {"shape": (4, 1, 3)}),
    ("getitem", (np.ones((4, 5)),), {"index": (3, Slice(0, 5))}),
]


CARRIES = VIEWS | JOINS | {AccessMap.READ, AccessMap.REDUCTION}
NAMES = frozenset(
    "sum prod max min cumsum matmul einsum deposit inv solve where reshape transpose broadcast_to concatenate stack"
    " getitem setitem scatter".split()
)


def taped(name: str, operands: tuple[Any, ...], static: dict[str, Any]) -> tuple[Tape, Op]:
    builder = TapeBuilder("op")
    given = [builder.input(type_of(each), number, f"x{number}") for number, each in enumerate(operands)]
    result = builder.emit(primitive(name), given, static)
    tape = builder.finish([result])
    return tape, tape.ops[-1]


def changes(op: Op, operands: tuple[Any, ...], position: int) -> np.ndarray:
    """Which elements of the result change with each element of an operand: NumPy says."""
    static = dict(op.static)
    before = op.primitive.function(*operands, **static)
    found = []
    for place in np.ndindex(np.shape(operands[position])):
        moved = np.array(operands[position])
        moved[place] += 0.3
        after = op.primitive.function(*operands[:position], moved, *operands[position + 1 :], **static)
        found.append(np.ravel(before != after))
    return np.array(found, bool).reshape(np.size(operands[position]), np.size(before)).T


def said(found: Link, shape: tuple[int, int]) -> np.ndarray:
    """The same, as the access map says."""
    if isinstance(found, Pairs):
        matrix = np.zeros(shape, bool)
        matrix[found.results, found.operands] = True
        return matrix
    outer = np.arange(shape[0]) if found.outer is None else found.outer
    inner = np.arange(shape[1]) if found.inner is None else found.inner
    same: np.ndarray = (outer[:, None] == inner) & (outer[:, None] >= 0)
    return same


def floats() -> list[Any]:
    """Ops on real numbers, and operands."""
    return [
        pytest.param(name, operands, static, id=f"{name}-{number}")
        for number, (name, operands, static) in enumerate([*CASES, *MORE])
        if name in NAMES and all(np.size(each) and np.asarray(each).dtype.kind in "fib" for each in operands)
    ]


@pytest.mark.parametrize(("name", "operands", "static"), floats())
def test_elements_depend_on_what_the_access_map_says(name: str, operands: Any, static: dict[str, Any]) -> None:
    tape, op = taped(name, operands, static)
    whole = {
        entry.variable: value
        for entry, value in zip(tape.inputs, operands, strict=True)
        if np.asarray(value).dtype.kind in "ib"
    }
    for position, operand in enumerate(operands):
        if np.asarray(operand).dtype.kind != "f":
            continue
        seen = changes(op, operands, position)
        claimed = said(link(tape, op, position, Known(tape, whole)), seen.shape)
        assert not np.any(seen & ~claimed)
        selects = op.semantics.chooses or op.semantics.fold in ("maximum", "minimum", "multiply")
        if op.access in EXACT and not selects:
            np.testing.assert_array_equal(seen, claimed)


@pytest.mark.parametrize(
    ("name", "operands", "static"), [each for each in floats() if primitive(each.values[0]).access in CARRIES]
)
def test_an_axis_that_is_carried_holds_the_rows_of_the_operand(
    name: str, operands: Any, static: dict[str, Any]
) -> None:
    _, op = taped(name, operands, static)
    result = op.primitive.function(*operands, **static)
    for axis, extent in enumerate(np.shape(operands[0])):
        carried = carried_axis(op, np.shape(operands[0]), np.shape(result), axis)
        if carried is None or np.shape(result)[carried] != extent:
            continue
        seen = changes(op, operands, 0).reshape(*np.shape(result), *np.shape(operands[0]))
        rows = np.moveaxis(seen, (carried, np.ndim(result) + axis), (0, 1)).reshape(extent, extent, -1).any(axis=2)
        assert not np.any(rows & ~np.eye(extent, dtype=bool))
        assert np.all(rows.diagonal()) or op.access not in VIEWS


def test_axes_are_carried() -> None:
    wanted = [(-4, 0, 2), (-3, 0, 0), (-3, 1, None), (-2, 0, None), (-2, 2, 2), (-1, 0, None), (-1, 1, 0)]
    for number, axis, new in wanted:
        tape, op = taped(*MORE[number])
        assert carried_axis(op, MORE[number][1][0].shape, tape.types[op.result].shape, axis) == new


@pytest.mark.parametrize(("left", "right"), [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2), (2, 4), (3, 3), (1, 3)])
def test_letters_of_matrix_products(left: int, right: int) -> None:
    operands = np.ones((2, 3, 3, 3)[-left:]), np.ones((2, 3, 3, 3)[-right:])
    terms, result = letters(taped("matmul", operands, {})[1], [left, right])
    operands = tuple(np.random.default_rng(1).random(each.shape) for each in operands)
    np.testing.assert_allclose(np.einsum(f"{','.join(terms)}->{result}", *operands), np.matmul(*operands))


def test_pieces_of_ops_by_indices() -> None:
    x, at = np.arange(20.0).reshape(4, 5), np.array([1, 3])
    _, op = taped("setitem", (x, np.ones(2), at), {"index": (GATHER, 2)})
    ((piece, arrays, index),) = pieces(op)
    assert (piece, arrays) == (1, [2])
    assert pattern_shape(index, [at.shape]) == x[to_numpy(index, [at])].shape
    assert pieces(taped("sum", (x,), {"axis": (0,), "keepdims": False})[1]) == []


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_folds_of_reductions(name: str) -> None:
    found, x = primitive(name).semantics, np.array([[2.0, 3.0, 5.0], [7.0, 11.0, -13.0]])
    assert found.access == AccessMap.REDUCTION
    np.testing.assert_array_equal(getattr(np, found.fold).reduce(x, axis=1), getattr(np, name)(x, axis=1))


def test_folds_of_scans() -> None:
    x = np.array([2.0, 3.0, -5.0])
    for name in ("cumsum", "cumprod"):
        np.testing.assert_array_equal(getattr(np, primitive(name).semantics.fold).accumulate(x), getattr(np, name)(x))


UFUNCS = [
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and getattr(np, name).nout == 1 and not getattr(np, name).signature
]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.0, 1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("name", [name for name in UFUNCS if primitive(name).semantics.commutes])
def test_operands_that_can_be_exchanged(name: str) -> None:
    values = np.arange(-3, 3) if name.startswith("bitwise") else SPECIAL
    function, (one, two) = getattr(np, name), np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function(one, two), function(two, one))


@pytest.mark.parametrize(
    "name", [name for name in UFUNCS if primitive(name).semantics.quiet and not name.startswith(("bitwise", "inv"))]
)
def test_quiet_functions_do_not_warn(name: str) -> None:
    function = getattr(np, name)
    grid = np.meshgrid(SPECIAL, SPECIAL)[: function.nin]
    with np.errstate(all="raise"):
        function(*grid)


@pytest.mark.parametrize("name", [name for name in BINARY if primitive(name).semantics.exact])
def test_operators_of_python_have_the_bits_of_numpys(name: str) -> None:
    numbers = [float(each) for each in np.random.default_rng(0).standard_normal(40)]
    for one, two in itertools.pairwise(numbers):
        assert BINARY[name].function(one, two) == getattr(np, name)(one, two)


@pytest.mark.parametrize(("name", "operands", "static"), floats())
def test_results_that_own_their_memory_share_none(name: str, operands: Any, static: dict[str, Any]) -> None:
    tape, op = taped(name, operands, static)
    result = op.primitive.function(*operands, **static)
    if np.ndim(result) and not shares(op, tape.types):
        assert not any(np.shares_memory(result, each) for each in operands)
    if op.access in VIEWS and np.ndim(result) and np.ndim(operands[0]):
        assert np.shares_memory(result, operands[0])


def test_positions() -> None:
    x = np.array([3.0, 0.0, 2.0, 0.0])
    kinds = {
        name: primitive(name).semantics.positions
        for name in ("argsort", "flatnonzero", "argmax", "searchsorted", "sum")
    }
    assert list(kinds.values()) == [
        Positions.SORTED,
        Positions.TRUE,
        Positions.EXTREME,
        Positions.BETWEEN,
        Positions.NONE,
    ]
    assert sorted(np.argsort(x)) == [0, 1, 2, 3]
    assert list(np.flatnonzero(x)) == [0, 2]


def compared(tree: ast.AST) -> list[int]:
    """Lines that compare a primitive's name: that of an op, or any name with those of functions of NumPy."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr == "name":
            of = node.left.value
            holder = of.attr if isinstance(of, ast.Attribute) else of.id if isinstance(of, ast.Name) else ""
            texts = [
                each.value
                for side in node.comparators
                for each in ast.walk(side)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            if holder in ("op", "primitive") or (texts and all(map(is_primitive, texts))):
                found.append(node.lineno)
    return found


def is_primitive(name: str) -> bool:
    try:
        return bool(primitive(name))
    except KeyError:
        return False


def test_comparisons_of_names_become_fewer() -> None:
    texts = {str(path): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    asking = {name: text for name, text in texts.items() if re.search(r"\.name (==|!=|in|not in) ", text)}
    found = [f"{name}:{line}" for name, text in asking.items() for line in compared(ast.parse(text))]
    assert len(found) <= MOST, f"ask `Op.access` and `Op.semantics`, not names: {found}"


def test_comparisons_are_found() -> None:
    tree = ast.parse("op.name == 'x'\nmade.name in ('sum', 'exp')\ntarget.name == 'cuda'\ncase.op.name not in TABLE")
    assert compared(tree) == [1, 2, 4]
