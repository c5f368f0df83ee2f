"""Some eigenvalues of large symmetric matrices, and singular values, by scipy.sparse.linalg, with their vectors."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.callables import original
from yota.ir.catalog import item_of, primitive
from yota.ir.infer import sample
from yota.ir.linear_solvers import Direct
from yota.ir.serialised import Carried
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Inner
from yota.solvers.solver_calls import Call, Calling
from yota.tracing.current import current, paused
from yota.tracing.implementations import records
from yota.tracing.scipy.sparsetools import constant, pattern, rows_of
from yota.tracing.trace import Trace
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reversal, emitted, match, taped

_REPEATED = 1e-10
"""An eigenvalue is repeated if another one is nearer, as a part of the largest sum of a row."""


class Places(Carried):
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
        numbers = np.concatenate([data, np.broadcast_to(-value, (self.count,)), vector, np.conjugate(vector)])
        sums = np.zeros_like(numbers)[: len(self.heads)]
        np.add.at(sums, self._inverse, numbers)
        return sums


class Distinct(Host):
    """The eigenvectors themselves, if no eigenvalue is repeated."""

    places: Places
    called = "eigenvalue"

    def __call__(self, data: Any, values: Any, vectors: Any) -> tuple[Any, ...]:
        """The eigenvectors.

        Raises DifferentiationError if one is repeated.
        """
        size = np.max(np.bincount(self.places.rows, np.abs(data), minlength=self.places.count))
        for value, vector in zip(values, vectors.T, strict=True):
            if not self._distance(data, value, vector) > _REPEATED * size:
                raise DifferentiationError(
                    f"the result of {self.name} has no derivative here: the {self.called} {value:.6g} is repeated"
                )
        return (np.array(vectors),)

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        return [(at.op.operands[2], at.adjoints[0])] if at.op.operands[2] in at.active else []

    def _distance(self, data: Any, value: Any, vector: Any) -> float:
        """About the distance to the next eigenvalue, by inverse iteration."""
        with paused():
            numbers = np.asarray(self.places.bordered(data, value, vector))
            numbers = numbers.astype(np.result_type(numbers, float))
            try:
                factors = Direct().factors(numbers, self.places.heads, self.places.tails, self.places.count + 1)
            except RuntimeError:
                return 0.0
            x = np.cos(np.arange(self.places.count + 1.0)).astype(numbers.dtype)
            for _ in range(4):
                x = factors.solve(x / np.linalg.norm(x))
        return float(1 / np.linalg.norm(x))


class Eigenvalues(Calling):
    """A call of eigsh; results are the eigenvalues, and their vectors in columns."""

    places: Places
    called = "eigenvalue"
    symmetric = wants = True
    matrix: tuple[Any, Any, tuple[int, int]]

    def run(self, functions: Sequence[Any], *others: Any) -> Solution:
        """See `Host.run`."""
        whole = self.whole(others[0])
        values, vectors = self.call.run(functions, *others, A=whole)
        if not self.wants:
            # SciPy's order may be another one.
            own = self.call.run(functions, *others, A=whole, return_eigenvectors=False)
            values, vectors = own, vectors[:, _matched(values, own)]
        return Solution([values, vectors], [], None)

    def whole(self, data: Any) -> Any:
        """The matrix of these numbers."""
        rows, columns, shape = self.matrix
        return importlib.import_module("scipy.sparse").csc_array((data, (rows, columns)), shape=shape)

    def pairs(self, at: Reversal) -> tuple[list[int], dict[int, int]]:
        """The eigenvalues and eigenvectors of the symmetric matrix, and their adjoints by number."""
        return [item_of(at.builder, at.op.result, number) for number in (0, 1)], dict(at.adjoints)

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`; the change of an eigenvector is orthogonal to it."""
        builder, registry, op = at.builder, at.registry, at.op
        if op.operands[0] not in at.active:
            return []
        pairs, slopes = self.pairs(at)
        given, numbers = [op.operands[0], *pairs], sorted(slopes)
        given += [match(builder, slopes[number], builder.types[given[1 + number]]) for number in numbers]
        host = Distinct(at.called(self.name), Inner(None))
        host.places, host.types, host.called = self.places, (builder.types[given[2]],), self.called

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
                if 0 in known and self.symmetric:
                    left = known[0][number] * vector[constant(trace, places.rows)]
                if 1 in known or not self.symmetric:
                    # The changes of the vector and of the value solve the bordered system.
                    matrix = places.bordered(data, values[number], vector)
                    along = known[1][:, number] if 1 in known else 0 * vector
                    by_value = 0 * vector[:1] if self.symmetric or 0 not in known else -known[0][number : number + 1]
                    side = np.conjugate(np.concatenate([along, by_value]))
                    places_of = (constant(trace, places.tails), constant(trace, places.heads))
                    operands = tuple(map(trace.lift, (matrix, side, *places_of)))
                    # Of samples, the matrix may be singular: it is not solved.
                    static = {"solver": Direct(), "transposed": True}
                    change = trace.record(solve, operands, static, np.ones(places.count + 1, side.dtype))
                    left = left - np.conjugate(change)[constant(trace, places.rows)]
                product = left * np.conjugate(vector)[constant(trace, places.columns)]
                total = total + (product if data.dtype.kind == "c" else np.real(product))
            return total

        tape = taped(pulled, [builder.types[each] for each in given], registry)
        return [(op.operands[0], emitted(builder, tape, given).outputs[0])]


class SingularValues(Eigenvalues):
    """A call of svds; results are the singular values, and their vectors in columns and in rows.

    With vectors ``u`` and ``v``, they are eigenvalues of ``[[0, A], [A.T, 0]]`` with vectors ``[u, v] / sqrt(2)``.
    """

    called = "singular value"

    def run(self, functions: Sequence[Any], *others: Any) -> Solution:
        """See `Host.run`."""
        whole = self.whole(others[0][: len(self.matrix[0])])
        u, values, vh = self.call.run(functions, *others, A=whole)
        if not self.wants:
            own = self.call.run(functions, *others, A=whole, return_singular_vectors=False)
            order = _matched(values, own)
            u, values, vh = u[:, order], own, vh[order]
        return Solution([values, u, vh], [], None)

    def pairs(self, at: Reversal) -> tuple[list[int], dict[int, int]]:
        """See `Eigenvalues.pairs`."""
        builder, adjoints = at.builder, at.adjoints
        parts = [item_of(builder, at.op.result, number) for number in range(3)]

        def emit(function: Callable[..., Any], *given: int) -> int:
            tape = taped(function, [builder.types[each] for each in given], at.registry)
            return emitted(builder, tape, given).outputs[0]

        def joined(u: Any, vh: Any) -> Any:
            return np.concatenate([u, vh.T])

        vectors = emit(lambda u, vh: joined(u, vh) * np.sqrt(0.5).astype(u.dtype), *parts[1:])
        slopes = {0: adjoints[0]} if 0 in adjoints else {}
        if 1 in adjoints or 2 in adjoints:
            own = [
                match(builder, adjoints[number], builder.types[parts[number]])
                if number in adjoints
                else zeros_like(builder, parts[number])
                for number in (1, 2)
            ]
            slopes[1] = emit(lambda du, dvh: joined(du, dvh) * np.sqrt(2.0).astype(du.dtype), *own)
        return [parts[0], vectors], slopes


def _plain_places(trace: Trace, name: str, A: Any) -> tuple[Any, Any, Any]:
    """A real matrix in compressed columns, and the rows and columns of its numbers."""
    sparse = sys.modules["scipy.sparse"]
    if not (sparse.issparse(A) or hasattr(A, "ndim")):
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} of an operator", "Pass a matrix.")
    matrix = sparse.csc_array(A if sparse.issparse(A) else trace.traced(A))
    cure = {"eigsh": "numpy.linalg.eigh", "svds": "numpy.linalg.svd"}.get(name)
    if cure and matrix.dtype.kind == "c":
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} of complex numbers", f"Use {cure} of A.toarray().")
    matrix.sum_duplicates()
    if matrix.dtype.kind not in "fc":
        matrix = matrix.astype(float)
    columns = rows_of(pattern(trace, matrix.indptr))
    return matrix, np.array(pattern(trace, matrix.indices)[: len(columns)]), columns


@records("scipy.sparse.linalg", "svds")
def _svds(
    trace: Trace,
    A: Any,
    k: int = 6,
    ncv: Any = None,
    tol: Any = 0,
    which: str = "LM",
    v0: Any = None,
    maxiter: Any = None,
    return_singular_vectors: Any = True,
    **options: Any,
) -> Any:
    wants = return_singular_vectors
    options |= {"ncv": ncv, "tol": tol, "which": which, "v0": v0, "maxiter": maxiter}
    if wants not in (True, False):
        raise trace.unrecorded("scipy.sparse.linalg.svds of vectors on one side", "Leave return_singular_vectors out.")
    matrix, rows, columns = _plain_places(trace, "svds", A)
    svds = original(sys.modules["scipy.sparse.linalg"].svds)
    data = trace.traced(matrix.data)[: len(columns)]
    call = Call(trace, svds, (np.concatenate([data, data]), k), options, [])

    height = matrix.shape[0]
    host = SingularValues(call)
    host.matrix, host.wants = (rows, columns, matrix.shape), bool(wants)
    host.places = Places(
        np.concatenate([rows, columns + height]), np.concatenate([columns + height, rows]), sum(matrix.shape)
    )
    _, (values, u, vh) = host.recorded(call.others)
    return (u, values, vh) if wants else values


@records("scipy.sparse.linalg", "eigsh", "eigs", named=True)
def _eigenvalues(name: str, trace: Trace, A: Any, k: int = 6, M: Any = None, **options: Any) -> Any:
    wants = options.pop("return_eigenvectors", True)
    if M is not None or any(options.get(each) is not None for each in ("Minv", "OPinv")):
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} with M, Minv or OPinv", "Use scipy.linalg.eigvals.")
    matrix, rows, columns = _plain_places(trace, name, A)
    solver = original(getattr(sys.modules["scipy.sparse.linalg"], name))
    call = Call(trace, solver, (trace.traced(matrix.data)[: len(columns)], k), options, [])

    host = Eigenvalues(call)
    host.matrix, host.wants = (rows, columns, matrix.shape), bool(wants)
    host.places, host.symmetric = Places(rows, columns, matrix.shape[0]), name == "eigsh"
    _, (values, vectors) = host.recorded(call.others)
    return (values, vectors) if wants else values


def _matched(values: Any, own: Any) -> list[int]:
    """The numbers of ``values`` that are nearest to each of ``own``, each once."""
    order: list[int] = []
    for each in own:
        left = [number for number in range(len(values)) if number not in order]
        order.append(min(left, key=lambda number: abs(values[number] - each)))
    return order


@records("scipy.sparse.linalg", "lobpcg")
def _refused(trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.unrecorded("scipy.sparse.linalg.lobpcg of traced numbers", "Use eigsh.")
