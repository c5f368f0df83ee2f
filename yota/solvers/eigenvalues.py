"""Some eigenvalues of large symmetric matrices by scipy.sparse.linalg: each and its vector depend on the matrix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.callables import original
from yota.ir.catalog import item_of, primitive
from yota.ir.infer import sample
from yota.ir.linear_solvers import Direct
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Inner
from yota.solvers.solver_calls import Call
from yota.tracing.current import current, paused
from yota.tracing.implementations import records
from yota.tracing.scipy.sparsetools import constant, pattern, rows_of
from yota.tracing.trace import Trace
from yota.transform.reverse.tape_parts import emitted, match, taped

_REPEATED = 1e-10
"""An eigenvalue is repeated if another one is nearer, as a part of the largest sum of a row."""


class Places:
    """Where the numbers of a symmetric matrix stand, and those of the matrix for the change of one eigenvector."""

    def __init__(self, rows: Any, columns: Any, count: int) -> None:
        self.rows, self.columns, self.count = rows, columns, count
        every, last = np.arange(count), np.full(count, count)
        heads = np.concatenate([rows, every, every, last])
        tails = np.concatenate([columns, every, last, every])
        keys = tails.astype(np.int64) * (count + 1) + heads
        _, first, self._inverse = np.unique(keys, return_index=True, return_inverse=True)
        self.heads, self.tails = heads[first], tails[first]

    def bordered(self, data: Any, value: Any, vector: Any) -> Any:
        """The numbers of the matrix less the eigenvalue, with the eigenvector as last row and column."""
        numbers = np.concatenate([data, np.broadcast_to(-value, (self.count,)), vector, vector])
        sums = np.zeros_like(numbers)[: len(self.heads)]
        np.add.at(sums, self._inverse, numbers)
        return sums


class Distinct(Host):
    """The eigenvectors themselves, if no eigenvalue is repeated."""

    places: Places

    def __call__(self, data: Any, values: Any, vectors: Any) -> tuple[Any, ...]:
        """The eigenvectors.

        Raises DifferentiationError if one is repeated.
        """
        size = np.max(np.bincount(self.places.rows, np.abs(data), minlength=self.places.count))
        for value, vector in zip(values, vectors.T, strict=True):
            if not self._distance(data, value, vector) > _REPEATED * size:
                raise DifferentiationError(
                    f"the result of {self.name} has no derivative here: the eigenvalue {value:.6g} is repeated"
                )
        return (np.array(vectors),)

    def adjoints(self, builder: Any, registry: Any, op: Any, adjoints: Any, active: Any, reverse: Any) -> Any:
        """See `Host.adjoints`."""
        return [(op.operands[2], adjoints[0])] if op.operands[2] in active else []

    def _distance(self, data: Any, value: Any, vector: Any) -> float:
        """About the distance to the next eigenvalue, by inverse iteration."""
        with paused():
            numbers = np.asarray(self.places.bordered(data, value, vector), float)
            try:
                factors = Direct().factors(numbers, self.places.heads, self.places.tails, self.places.count + 1)
            except RuntimeError:
                return 0.0
            x = np.cos(np.arange(self.places.count + 1.0))
            for _ in range(4):
                x = factors.solve(x / np.linalg.norm(x))
        return float(1 / np.linalg.norm(x))


class Eigenvalues(Host):
    """A call of eigsh; results are the eigenvalues, and their vectors in columns."""

    places: Places

    def adjoints(self, builder: Any, registry: Any, op: Any, adjoints: Any, active: Any, reverse: Any) -> Any:
        """See `Host.adjoints`; the change of an eigenvector is orthogonal to it."""
        if op.operands[0] not in active:
            return []
        given = [op.operands[0], item_of(builder, op.result, 0), item_of(builder, op.result, 1)]
        numbers = [number for number in (0, 1) if number in adjoints]
        given += [match(builder, adjoints[number], builder.types[given[1 + number]]) for number in numbers]
        host = Distinct(self.name, Inner(None), lambda _: None)  # type: ignore[arg-type, return-value]
        host.places, host.types = self.places, (builder.types[given[2]],)

        solve = registry.primitive("sparse_solve")

        def pulled(data: Any, values: Any, vectors: Any, *slopes: Any) -> Any:
            known = dict(zip(numbers, slopes, strict=True))
            trace = current()
            assert trace is not None
            operands = tuple(map(trace.lift, (data, values, vectors)))
            (vectors,) = trace.record(primitive("solved"), operands, {"host": host}, (sample(host.types[0]),))
            places, total = self.places, 0.0 * data
            for number in range(len(values)):
                vector = vectors[:, number]
                left: Any = 0.0
                if 0 in known:
                    left = known[0][number] * vector[constant(trace, places.rows)]
                if 1 in known:
                    matrix = places.bordered(data, values[number], vector)
                    side = np.concatenate([known[1][:, number], np.zeros(1, data.dtype)])
                    places_of = (constant(trace, places.heads), constant(trace, places.tails))
                    operands = tuple(map(trace.lift, (matrix, side, *places_of)))
                    # Of samples, the matrix may be singular: it is not solved.
                    static = {"solver": Direct(), "transposed": False}
                    change = trace.record(solve, operands, static, np.ones(places.count + 1, side.dtype))
                    left = left - change[constant(trace, places.rows)]
                total = total + left * vector[constant(trace, places.columns)]
            return total

        tape = taped(pulled, [builder.types[each] for each in given], registry)
        return [(op.operands[0], emitted(builder, tape, given).outputs[0])]


@records("scipy.sparse.linalg", "eigsh")
def _eigsh(trace: Trace, A: Any, k: int = 6, M: Any = None, **options: Any) -> Any:
    sparse = sys.modules["scipy.sparse"]
    wants = options.pop("return_eigenvectors", True)
    if not (sparse.issparse(A) or hasattr(A, "ndim")):
        raise trace.unrecorded("scipy.sparse.linalg.eigsh of an operator", "Pass a matrix.")
    if M is not None or any(options.get(name) is not None for name in ("Minv", "OPinv")):
        raise trace.unrecorded("scipy.sparse.linalg.eigsh with M, Minv or OPinv", "Use scipy.linalg.eigvalsh.")
    matrix = sparse.csc_array(A if sparse.issparse(A) else trace.traced(A))
    if matrix.dtype.kind == "c":
        raise trace.unrecorded("scipy.sparse.linalg.eigsh of complex numbers", "Use numpy.linalg.eigh of A.toarray().")
    matrix.sum_duplicates()
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(float)
    columns = rows_of(pattern(trace, matrix.indptr))
    rows = np.array(pattern(trace, matrix.indices)[: len(columns)])
    places = Places(rows, columns, matrix.shape[0])
    eigsh = original(sys.modules["scipy.sparse.linalg"].eigsh)
    call = Call(trace, eigsh, (trace.traced(matrix.data)[: len(columns)], k), options, [])

    def run(functions: Sequence[Any], *others: Any) -> Solution:
        whole = sparse.csc_array((others[0], (rows, columns)), shape=matrix.shape)
        values, vectors = call.run(functions, *others, A=whole)
        if not wants:
            # SciPy's order may be another one.
            own = call.run(functions, *others, A=whole, return_eigenvectors=False)
            order = np.argsort(values)[np.argsort(np.argsort(own))]
            values, vectors = own, vectors[:, order]
        return Solution([values, vectors], [], None)

    host = Eigenvalues(call.name, call.inner, run)
    host.places = places
    _, (values, vectors) = host.recorded(call.others)
    return (values, vectors) if wants else values


_CURES = {"eigs": "numpy.linalg.eig of A.toarray()", "svds": "numpy.linalg.svd of A.toarray()", "lobpcg": "eigsh"}


@records("scipy.sparse.linalg", *_CURES, named=True)
def _refused(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.unrecorded(f"scipy.sparse.linalg.{name} of traced numbers", f"Use {_CURES[name]}.")
