"""Sparsity patterns: which elements of a variable depend on which elements of an input."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.regions import Region
from yota.ir.tape import Op, Tape
from yota.optimize.rewrite import cone
from yota.transform.sparse.csr import library
from yota.transform.sparse.element_maps import Known, Link, Pairs, link


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Sparsity pattern of a matrix of derivatives.

    matrix: a ``scipy.sparse.csr_array`` of booleans: elements of the result by elements of the input, in C order.
    relied: inputs with index or mask values; the pattern holds only for these values.
    """

    matrix: Any
    relied: frozenset[int]


def pattern(tape: Tape, result: int, by: int, values: Mapping[int, Any], most: int) -> Pattern:
    """The pattern of the derivatives of ``result`` by the input ``by``; entries outside it are zero."""
    known = Known(tape, values)
    found = patterns(tape, [result], [by], known, most)
    return Pattern(found, frozenset(known.relied))


def patterns(tape: Tape, results: Sequence[int], by: Sequence[int], known: Known, most: int) -> Any:
    """The pattern of ``results`` by ``by``; intermediate patterns have up to ``most`` entries."""
    starts, ends = _units(tape, by)
    found = _of_all(tape, results, starts, known, most)
    return _stacked([found.get(each, _nothing(tape.types[each].size, ends[-1])) for each in results])


def _units(tape: Tape, variables: Sequence[int]) -> tuple[dict[int, Any], Any]:
    """Rows of an identity matrix for the elements of each variable, and where they start and end."""
    ends = np.cumsum([0, *(tape.types[each].size for each in variables)])
    whole = library().eye_array(int(ends[-1]), dtype=bool, format="csr")
    return {each: whole[begin:end] for each, begin, end in zip(variables, ends, ends[1:], strict=False)}, ends


def _of_all(tape: Tape, results: Sequence[int], found: dict[int, Any], known: Known, most: int) -> dict[int, Any]:
    """Patterns of ``results``, from the patterns ``found`` of inputs; those that are missing are empty."""
    needed = cone(tape, results)
    ops = [op for op in tape.ops if op.result in needed]
    last = {operand: op.result for op in ops for operand in op.operands}
    for op in ops:
        if op.regions and op.keyword("region").is_fixed:
            if not found.keys().isdisjoint(op.operands):
                found[op.result] = _looped(tape, op, found, known, most)
        elif tape.types[op.result].differentiable:
            parts = [
                _carried(tape, op, link(tape, op, position, known), found[operand], most)
                for position, operand in enumerate(op.operands)
                if operand in found
            ]
            if parts:
                found[op.result] = _union(parts)
        for operand in op.operands:
            if last[operand] == op.result and operand not in results:
                found.pop(operand, None)
    return {each: found[each] for each in results if each in found}


def _looped(tape: Tape, op: Op, found: Mapping[int, Any], known: Known, most: int) -> Any:
    """The pattern of all results of a loop: the pattern of one trip, applied trip by trip."""
    region: Region = op.keyword("region")
    body, carries, trips = region.body, region.carries, region.trips or 0
    inputs, invariant = [entry.variable for entry in body.inputs[1:]], region.first_invariant - 1
    sizes = [body.types[each].size for each in inputs]
    own, ends = _units(body, inputs)
    outer = dict(zip(inputs[invariant:], op.operands[invariant:], strict=True))
    inside = Known(body, {each: known.peek(operand) for each, operand in outer.items() if operand in known})
    patterns = _of_all(body, body.outputs, own, inside, most)
    for each in inside.relied:
        known.rely(outer[each])
    counts = [body.types[each].size for each in body.outputs]
    trip = _stacked([patterns.get(each, _nothing(n, ends[-1])) for each, n in zip(body.outputs, counts, strict=True)])
    columns = next(found[each].shape[1] for each in op.operands if each in found)
    given = [found.get(each, _nothing(tape.types[each].size, columns)) for each in op.operands]
    # Carried values and rows differ from trip to trip; what is the same in each is added once.
    moving, same = trip[:, : ends[invariant]], trip[:, ends[invariant] :]
    fixed = same @ _stacked(given[invariant:]) if same.shape[1] else _nothing(sum(counts), columns)
    state, made, total = given[:carries], [], 0
    for number in range(trips):
        at = trips - 1 - number if region.backwards else number
        rows = [each[at * n : (at + 1) * n] for each, n in zip(given[carries:invariant], sizes[carries:], strict=False)]
        results = moving @ _stacked([*state, *rows]) + fixed if state or rows else fixed
        total += results.nnz
        _check(op, total, most)
        parts = np.cumsum([0, *counts])
        split = [results[begin:end] for begin, end in itertools.pairwise(parts)]
        state = split[:carries]
        made.append(split[carries:])
    ordered = made[::-1] if region.backwards else made
    return _stacked([*state, *(row for several in zip(*ordered, strict=True) for row in several)])


def _nothing(rows: int, columns: int) -> Any:
    return library().csr_array((rows, columns), dtype=bool)


def _stacked(parts: Sequence[Any]) -> Any:
    return library().vstack(parts, format="csr")


def _union(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        if part is not total:
            total = total + part
    return total


def _carried(tape: Tape, op: Op, link: Link, matrix: Any, most: int) -> Any:
    """The rows of ``matrix`` for an operand, propagated through the op to its result."""
    count = tape.types[op.result].size
    if isinstance(link, Pairs):
        return _joined(op, link.results, link.operands, count, matrix, most)
    if link.inner is not None:
        kept = np.flatnonzero(link.inner >= 0)
        matrix = _joined(op, link.inner[kept], kept, link.count, matrix, most)
    if link.outer is not None:
        kept = np.flatnonzero(link.outer >= 0)
        matrix = _joined(op, kept, link.outer[kept], count, matrix, most)
    return matrix


def _joined(op: Op, rows: Any, columns: Any, count: int, matrix: Any, most: int) -> Any:
    """For each row the union of its linked rows of ``matrix``."""
    many = int(np.sum(np.diff(matrix.indptr).astype(np.int64)[columns]))
    _check(op, many, most)
    shape = (count, matrix.shape[0])
    if len(rows) and np.all(rows[:-1] < rows[1:]) and len(rows) == count:
        return matrix[columns]
    chosen = library().csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    return chosen @ matrix


def _check(op: Op, many: int, most: int) -> None:
    if many > most:
        raise DifferentiationError(
            f"{op.name} makes too many elements depend on one another ({many} pairs), in {op.location or op.name}"
        )
