"""Cuts of a tape behind the ops that only move elements of an input, and before those that only sum into the result.

A residual of a camera and a point, or the force of a bond, reads few elements by constant indices, whichever they are.
The derivatives of what is between the cuts have dense blocks of a few rows and columns, which few products give. A
Jacobian is these blocks, moved and summed: J = sums @ blocks @ moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.semantics import JOINS, MOVES, AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.optimize.rewrite import reached, with_ops
from yota.transform.sparse.csr import library
from yota.transform.sparse.element_maps import Groups, Known, link
from yota.transform.sparse.linear_ops import SUMS, factor, is_told, keeps_dtype, mask, matrix

_JOINS = SUMS | JOINS | {AccessMap.WRITE, AccessMap.READ}
"""Maps by which elements of several variables, or several elements of one, become one variable."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A tape with the variables that bound its differentiated part.

    tape: the tape, in which the variables ``inner`` are results of ops of their own.
    inner: variables whose elements are elements of the input.
    moves: for each element of ``inner`` its number in the input, -1 for other numbers.
    outer: variables of which the result is a linear function.
    sums: a ``scipy.sparse`` array, the factors of that function: elements of the result by elements of ``outer``.
    """

    tape: Tape
    inner: tuple[int, ...]
    moves: np.ndarray
    outer: tuple[int, ...]
    sums: Any

    @classmethod
    def none(cls, tape: Tape, result: int, by: int) -> Cut:
        """The whole tape."""
        count = tape.types[result].size
        return cls(tape, (by,), np.arange(tape.types[by].size), (result,), library().eye_array(count, format="csr"))


def cuts(tape: Tape, result: int, by: int, known: Known) -> Iterator[Cut]:
    """The cuts of the derivative of ``result`` by the input ``by`` that may need fewer products than the whole."""
    dependent = reached(tape, [by])
    if result not in dependent or tape.types[by].weak:
        return
    places = _moved(tape, by, dependent, known)
    for wide in (False, True):
        inside = _split(tape, result, places, wide=wide)
        if wide and not inside.stretched:
            return
        copied = [(places[each].reshape(tape.types[each].shape), wide) for each, wide in inside.copies]
        origins = [np.broadcast_to(*each).ravel() for each in copied]
        moves = np.concatenate(origins) if origins else np.zeros(0, np.int64)
        inner = tuple(inside.copies.values())
        seen: set[tuple[int, ...]] = set()
        for summed in (True, False):
            sums = _summed(inside.tape, inside.result, dependent, inner, known, summed=summed)
            if tuple(sums) not in seen:
                seen.add(tuple(sums))
                yield Cut(inside.tape, inner, moves, tuple(sums), library().hstack(list(sums.values()), format="csr"))


def _moved(tape: Tape, by: int, dependent: set[int], known: Known) -> dict[int, np.ndarray]:
    """For each variable that holds elements of ``by`` and else constants: the number of each element, or -1."""
    places = {by: np.arange(tape.types[by].size)}
    for op in tape.ops:
        moving = [number for number, each in enumerate(op.operands) if each in dependent]
        condition = mask(op, known)
        if not moving or not is_told(op, known) or (op.access not in MOVES and condition is None):
            continue
        if all(op.operands[each] in places and keeps_dtype(tape, op, each) for each in moving):
            found = np.full(tape.types[op.result].size, -1)
            for each in moving:
                # A move has one element, or none, for each of the result.
                outer = cast("Groups", link(tape, op, each, known)).outer
                outer = np.arange(len(found)) if outer is None else outer
                read = outer >= 0
                if condition is not None:
                    read &= np.broadcast_to(condition == (each == 1), tape.types[op.result].shape).ravel()
                found[read] = places[op.operands[each]][outer[read]]
            places[op.result] = found
    return places


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    """A tape in which what reads moved elements reads copies of them.

    copies: by the variable and shape.
    stretched: whether copies are larger than what they copy.
    """

    tape: Tape
    result: int
    copies: dict[tuple[int, tuple[int, ...]], int]
    stretched: bool


def _split(tape: Tape, result: int, places: Mapping[int, Any], *, wide: bool) -> _Split:
    """Copy moved elements where other ops read them; ``wide``: in the shape of what is computed from them."""
    ops: list[Op] = []
    types = dict(tape.types)
    copies: dict[tuple[int, tuple[int, ...]], int] = {}
    count = max(types)

    def copied(variable: int, shape: tuple[int, ...], location: Any) -> int:
        found = copies.get((variable, shape))
        if found is None:
            type = types[variable]
            found = copies[variable, shape] = count + len(copies) + 1
            types[found] = TensorType(type.dtype, shape)
            how = "reshape" if shape == type.shape else "broadcast_to"
            ops.append(Op(found, primitive(how), (variable,), (("shape", shape),), location))
        return found

    for op in tape.ops:
        if op.result not in places and not places.keys().isdisjoint(op.operands):
            type = types[op.result]
            spread = type.shape if wide and op.primitive.elementwise and not isinstance(type, TupleType) else None
            operands = tuple(
                [
                    copied(each, types[each].shape if spread is None else spread, op.location)
                    if each in places
                    else each
                    for each in op.operands
                ]
            )
            ops.append(Op(op.result, op.primitive, operands, op.static, op.location))
        else:
            ops.append(op)
    if result in places:
        result = copied(result, types[result].shape, None)
    stretched = any(shape != types[variable].shape for variable, shape in copies)
    return _Split(with_ops(tape, ops, types=types), result, copies, stretched)


def _summed(
    tape: Tape, result: int, dependent: set[int], inner: Sequence[int], known: Known, *, summed: bool
) -> dict[int, Any]:
    """Variables of which ``result`` is a linear function, each with its matrix; only moved where not ``summed``."""
    moving = {
        op.result: [number for number, each in enumerate(op.operands) if each in dependent or each in inner]
        for op in tape.ops
        if op.result in dependent
    }
    split = _split_sums(tape, result, moving, known) if summed else set()
    found = {result: library().eye_array(tape.types[result].size, format="csr")}
    for op in reversed(tape.ops):
        if op.result not in found or op.result not in moving or not (op.access in MOVES or op.result in split):
            continue
        factors = [matrix(tape, op, number, known) for number in moving[op.result]]
        if all(each is not None for each in factors):
            whole = found.pop(op.result)
            for number, each in zip(moving[op.result], factors, strict=True):
                own = whole @ each
                operand = op.operands[number]
                found[operand] = found[operand] + own if operand in found else own
    return found


def _split_sums(tape: Tape, result: int, moving: Mapping[int, Sequence[int]], known: Known) -> set[int]:
    """Results of linear ops; of sums only those that join elements, and those whose terms are also added elsewhere."""
    linear = [
        op
        for op in tape.ops
        if op.result in moving and all(factor(tape, op, each, known) is not None for each in moving[op.result])
    ]
    reach, readers = {result}, Counter[int]()
    for op in reversed(linear):
        if op.result in reach:
            operands = [op.operands[each] for each in moving[op.result]]
            reach.update(operands)
            readers.update(operands)
    split: set[int] = set()
    joining: set[int] = set()
    several: set[int] = set()
    for op in linear:
        operands = [op.operands[each] for each in moving[op.result]]
        several.update(each for each in operands if readers[each] > 1)
        is_sum = op.access == AccessMap.REDUCTION or len(operands) > 1
        if op.access in _JOINS or not joining.isdisjoint(operands):
            joining.add(op.result)
        if not is_sum and not several.isdisjoint(operands):
            several.add(op.result)
        if op.result in joining or not is_sum or several.issuperset(operands):
            split.add(op.result)
    return split
