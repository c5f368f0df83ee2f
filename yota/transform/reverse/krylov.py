"""Linear systems of matrices of which only products are computed, by iterations of SciPy's, at each run of a tape."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.inputs import Input
from yota.ir.linear_solvers import Iterative, unconverged
from yota.ir.serialised import Carried
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.optimize import dce
from yota.optimize.rewrite import cone
from yota.rules.registry import Registry
from yota.tracing.current import paused
from yota.tracing.replay import evaluate
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reversal, Reverse, emitted, match


@dataclass(frozen=True, eq=False)
class Krylov(Carried):
    """A system of linear equations, as the host of a `solved` op of the right-hand side and what the matrix reads.

    name: of the function whose derivative, or solution, this is.
    product: takes a vector, and then what the matrix reads; gives the product with the matrix.
    fault: what is said where it does not converge; empty for its own message.
    """

    name: str
    product: Tape
    transposed: Tape
    solver: Iterative
    fault: str = ""

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The type of the solution, which is the only result."""
        return (self.product.types[self.product.inputs[0].variable],)

    def on(self, target: Any) -> Krylov:
        """The system as it is in code for a target."""
        return self

    def __call__(self, right: Any, *given: Any) -> tuple[Any, ...]:
        """The solution."""
        with paused():
            try:
                return self._shaped(self.solver.run(self._operator(given), np.ravel(right), False))
            except DifferentiationError:
                if self.fault:
                    raise DifferentiationError(self.fault) from None
                raise

    def _operator(self, given: Sequence[Any]) -> Any:
        type = self.types[0]
        library = importlib.import_module("scipy.sparse.linalg")
        forward, backward = (partial(_product, tape, type, given) for tape in (self.product, self.transposed))
        return library.LinearOperator((type.size,) * 2, matvec=forward, rmatvec=backward, dtype=type.dtype)

    def _shaped(self, found: Any) -> tuple[Any, ...]:
        type = self.types[0]
        return (np.reshape(found, type.shape).astype(type.dtype, copy=False),)

    def adjoints(self, at: Reversal) -> list[tuple[int, int]]:
        """Operands with their adjoints: one more system, with the transpose."""
        builder, op = at.builder, at.op
        right, *given = op.operands
        solution = item_of(builder, op.result, 0)
        other = replace(self, product=self.transposed, transposed=self.product)
        slope = other.emitted(builder, match(builder, at.adjoints[0], builder.types[solution]), given)
        found = [(right, match(builder, slope, builder.types[right]))] if right in at.active else []
        inlined = emitted(builder, self.product, [solution, *given])
        seeds = {inlined.outputs[0]: builder.emit(primitive("negative"), (slope,))}
        wrt = [each for each in dict.fromkeys(given) if each in at.active]
        rest = zip(wrt, at.reverse(inlined, builder, seeds, wrt, at.registry), strict=True)
        return found + [(each, match(builder, total, builder.types[each])) for each, total in rest if total is not None]

    def emitted(self, builder: TapeBuilder, right: int, given: Sequence[int]) -> int:
        """The solution, as a variable of ``builder``."""
        return item_of(builder, builder.emit(primitive("solved"), (right, *given), {"host": self}), 0)


class Unconverged(Krylov):
    """An iteration that ended before it converged: what it found, and how it ended."""

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the solution and of SciPy's ``info``."""
        return (*super().types, type_of(0))

    def __call__(self, right: Any, *given: Any) -> tuple[Any, ...]:
        """What the iteration found, and SciPy's ``info``."""
        with paused():
            found, info = self.solver.attempt(self._operator(given), np.ravel(right), False)
        return (*self._shaped(found), int(info))

    def adjoints(self, at: Reversal) -> list[tuple[int, int]]:
        """See `Krylov.adjoints`."""
        raise unconverged(at.called(self.name))


def _product(tape: Tape, type: TensorType, given: Sequence[Any], v: Any) -> Any:
    variables = [each.variable for each in tape.inputs]
    vector = np.reshape(v, type.shape).astype(type.dtype, copy=False)
    return np.ravel(evaluate(tape, dict(zip(variables, (vector, *given), strict=True)))[0])


def pullback(tape: Tape, registry: Registry, reverse: Reverse) -> Tape:
    """What takes a seed of the first output of ``tape``, and then its inputs; gives the adjoint of the first input."""
    tape = replace(tape, outputs=tape.outputs[:1], guards=())
    builder, (result,), first = tape.builder(), tape.outputs, tape.inputs[0].variable
    seed = builder.input(builder.types[result], 0, "seed")
    (found,) = reverse(tape, builder, {result: seed}, [first], registry)
    found = zeros_like(builder, first) if found is None else match(builder, found, builder.types[first])
    made = dce.run(builder.finish([found]))
    return _taking(made, [seed, *(each.variable for each in tape.inputs)])


def transposed(product: Tape, registry: Registry, reverse: Reverse, what: str) -> Tape:
    """What gives products with the transpose of the matrix of ``product``."""
    made = pullback(product, registry, reverse)
    seed, vector, *rest = [each.variable for each in made.inputs]
    if vector in cone(made, made.outputs):
        raise DifferentiationError(f"{what}: the product of the operator with a vector is not linear in the vector")
    return _taking(made, [seed, *rest])


def _taking(tape: Tape, variables: Sequence[int]) -> Tape:
    inputs = tuple(Input(each, number, f"x{number}") for number, each in enumerate(variables))
    return replace(tape, inputs=inputs)
