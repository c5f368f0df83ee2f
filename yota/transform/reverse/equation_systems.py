"""The linear system of an implicit function's adjoint: by a dense matrix, a sparse one, or products alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.linear_solvers import Direct, Iterative
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import dce
from yota.rules.registry import Registry
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.krylov import Krylov, pullback, transposed
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reversal, Reverse, constant, emitted, match
from yota.transform.sparse.compression import Compression, compression
from yota.transform.sparse.products import MOST_PRODUCTS, rows_of

_FEW = 6
"""Rows of a matrix up to which each has code of its own."""
_LEAST_SPARSE, _LARGEST_DENSE = 64, 4096
"""Unknowns from which on a matrix may be sparse, and up to which it may be dense, where a rule does not say it."""
_ROWS_IN_PRODUCT = 8
"""Rows for each product from which on a matrix is sparse."""
_UNSOLVED = (
    "the result of {} has no derivative here that GMRES finds: the Jacobian of the equations at the solution is "
    "singular, or far from regular. An @implicit rule may ask for solve='dense' or solve='sparse'"
)
_RESTART, _CYCLES = 100, 20
"""Vectors that GMRES keeps, and how often it begins anew."""


def divided(
    name: str, at: Reversal, tape: Tape, given: Sequence[int], equation: int, slope: int, solve: str, elementwise: bool
) -> int:
    """Minus ``slope``, the adjoint of a solution, divided by the derivative of the equation that it solves.

    tape: gives the equation, of the solution and what else it reads.
    given, equation: the solution and all else, and the equation, as variables of the builder.
    solve: as in `Implicit`.
    elementwise: whether each element of the equation is for the element of the solution in its place.
    """
    builder, registry, reverse = at.builder, at.registry, at.reverse
    solution, type = builder.types[given[0]], builder.types[equation]
    if solution.size != type.size:
        raise DifferentiationError(
            f"the result of {name} has no derivative: there are {type.size} equations of {solution.size} unknowns"
        )
    static = {"what": name, "elementwise": elementwise or solution.size == 1}
    right = builder.emit(primitive("negative"), (match(builder, slope, solution),))

    def shaped(variable: int, shape: tuple[int, ...]) -> int:
        return builder.emit(primitive("reshape"), (variable,), {"shape": shape})

    if static["elementwise"]:
        matrix = emitted(builder, jacobian(tape, registry, reverse, single=True, what=name), given).outputs[0]
        matrix = builder.emit(primitive("regular"), (matrix, equation, given[0]), static)
        return match(builder, shaped(builder.emit(primitive("divide"), (right, matrix)), type.shape), type)
    right = shaped(right, (solution.size,))
    known = {each.variable: builder.constants.get(one) for each, one in zip(tape.inputs, given, strict=True)}
    how, compressed = _chosen(name, tape, {one: value for one, value in known.items() if value is not None}, solve)
    if how == "gmres":
        product = pullback(tape, registry, reverse)
        options = (("rtol", np.finfo(solution.dtype).eps ** (2 / 3)), ("restart", _RESTART), ("maxiter", _CYCLES))
        solver = Iterative(how, options, None, "")
        system = Krylov(name, product, transposed(product, registry, reverse, name), solver, _UNSOLVED.format(name))
        # The iteration for a vector without structure converges only if the matrix is regular.
        any_seed = constant(builder, type, np.cos(np.arange(type.size)).reshape(type.shape))
        other = system.emitted(builder, any_seed, given)
        place = builder.emit(primitive("regular"), (given[0], equation, given[0], other), static)
        return system.emitted(builder, shaped(right, type.shape), [place, *given[1:]])
    if compressed is not None:
        matrix = emitted(builder, _entries(compressed, registry, reverse), given).outputs[0]
        places = compressed.matrix
        heads, tails = builder.constant(places.indices.astype(np.int64)), builder.constant(rows_of(places))
        matrix = builder.emit(primitive("regular"), (matrix, equation, given[0], heads, tails), static)
        how_solved = {"solver": Direct(), "transposed": False}
        found = builder.emit(registry.primitive("sparse_solve"), (matrix, right, heads, tails), how_solved)
    else:
        matrix = emitted(builder, jacobian(tape, registry, reverse, what=name), given).outputs[0]
        matrix = builder.emit(primitive("regular"), (matrix, equation, given[0]), static)
        across = builder.emit(primitive("transpose"), (matrix,), {"axes": (1, 0)})
        found = builder.emit(primitive("solve"), (across, right))
    return match(builder, shaped(found, type.shape), type)


def _chosen(name: str, tape: Tape, known: Mapping[int, Any], solve: str) -> tuple[str, Compression | None]:
    """How to solve the system, and how to compute a sparse matrix."""
    solution, result = tape.inputs[0].variable, tape.outputs[0]
    size = tape.types[solution].size
    large = "gmres" if size > _LARGEST_DENSE else "dense"
    if tape.types[solution].is_complex or solve in ("dense", "gmres"):
        return solve or "dense", None
    if not solve and size < _LEAST_SPARSE:
        return large, None
    most = min(MOST_PRODUCTS, size if solve else size // _ROWS_IN_PRODUCT)
    try:
        return "sparse", compression(tape, result, solution, known, 4 * MOST_PRODUCTS * size, most)
    except DifferentiationError as reason:
        if solve:
            raise DifferentiationError(
                f"the Jacobian of the equation of {name} is not sparse: {reason}. Index arrays tell the pattern if "
                "they come from outside of the function, and are no arguments; or write solve='gmres'"
            ) from None
    return large, None


def _entries(compressed: Compression, registry: Registry, reverse: Reverse) -> Tape:
    """The numbers of a sparse matrix, at the places of its pattern."""
    builder = compressed.cut.tape.builder()
    return dce.run(replace(builder.finish([compressed.entries(builder, registry, reverse)]), guards=()))


def jacobian(
    tape: Tape, registry: Registry, reverse: Reverse, by: int = 0, *, single: bool = False, what: str = ""
) -> Tape:
    """The derivative of the first output by an input: its elements where ``single``, or a matrix."""
    tape = replace(tape, outputs=tape.outputs[:1], guards=())
    (output,), solution = tape.outputs, tape.inputs[by].variable
    size, type = tape.types[output].size, tape.types[output]
    builder = tape.builder()

    def row(seed: int) -> int:
        (found,) = reverse(tape, builder, {output: seed}, [solution], registry)
        if found is None and what:
            raise DifferentiationError(
                f"the result of {what} has no derivative: an equation of {tape.name} only jumps as the solution moves"
            )
        found = zeros_like(builder, solution) if found is None else match(builder, found, builder.types[solution])
        if single:
            return found
        return builder.emit(primitive("reshape"), (found,), {"shape": (builder.types[solution].size,)})

    if single:
        return dce.run(builder.finish([row(constant(builder, type, np.ones(type.shape)))]))
    if size <= _FEW:
        rows = [row(constant(builder, type, unit)) for unit in _units(type)]
        return dce.run(builder.finish([builder.emit(primitive("stack"), rows, {"axis": 0})]))
    seed = builder.input(TensorType(type.dtype, type.shape), len(tape.inputs), "seed")
    one = dce.run(builder.finish([row(seed)]))
    many = batched(one, [None] * len(tape.inputs) + [0], type.size, [0])
    last = many.inputs[-1].variable
    return replace(many, inputs=many.inputs[:-1], constants={**many.constants, last: np.stack(_units(type))})


def jacobian_rows(builder: TapeBuilder, tape: Tape, registry: Registry, reverse: Reverse) -> int:
    """The derivatives by each element of the first input, in rows, of the output of ``tape``, which ``builder`` holds.

    There is a product with a direction for each row, where `jacobian` has one for each element of the output.
    """
    forward = transposed(pullback(tape, registry, reverse), registry, reverse, tape.name)
    vector, *rest = (each.variable for each in forward.inputs)
    type = forward.types[vector]
    many = batched(forward, [0] + [None] * len(rest), type.size, [0])
    units = constant(builder, TensorType(type.dtype, (type.size, *type.shape)), np.stack(_units(type)))
    found = emitted(builder, many, [units, *(each.variable for each in tape.inputs)]).outputs[0]
    shape = (type.size, builder.types[found].size // type.size)
    return builder.emit(primitive("reshape"), (found,), {"shape": shape})


def _units(type: TensorType) -> list[Any]:
    return list(np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape))
