"""Jacobians and Hessians of a function: straight-line code if possible, otherwise a pullback for each row."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.api.row_pullbacks import Rows, largest
from yota.emit.python.scalar import is_scalar
from yota.errors import ArgumentError, DifferentiationError, TracingError, YotaError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf
from yota.ir.tape import Op, Tape
from yota.optimize import pipeline
from yota.rules.registry import registry
from yota.run.arguments import Arguments, sort_arguments
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.derivatives.directions import row_by_row, stacked
from yota.run.derivatives.inside import inside
from yota.run.derivatives.joint import Joint
from yota.run.derivatives.prepared import Prepared
from yota.run.derivatives.straight_line import Entries, Wanted, short_hessian, slope_of, sloped, straight_line
from yota.run.device import on_host
from yota.run.dynamic import Dynamic
from yota.run.gradient_layout import Layout, layout_of, only_leaf
from yota.run.specialise import Gradient, Instead, Target, rolled, simplified
from yota.tracing.record import Recording
from yota.tracing.results import ResultForm, parted
from yota.transform.rolling.periods import Worth
from yota.transform.sparse.csr import CompressedRows

_LONG = 512
"""Number of elements above which a few array operations are preferred to scalar code."""
_MOST_TOGETHER = 1 << 16
"""Smallest array size for which all rows of a Hessian are computed together."""
_UNROLLED = 2
"""Length ratio of scalar code that was expanded from array code."""
_FEW, _LONG_CODE = 16, 2000
"""Largest number of Hessian rows computed without its pattern, one by one or at once, for gradients of so many ops."""

_SOON = Worth(trips=8, ops=192)
"""Lengths from which a run becomes a loop in a Hessian: straight code is slow to compile, for the few calls of it."""


class Matrices(Differentiated):
    """``function`` with compiled code for its partial derivatives, for each combination of argument types.

    wrt: position or name of the argument to differentiate by.
    matrix: creates functions of such matrices by arguments at other positions.
    target, dynamic: see `Differentiated`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        wrt: int | str,
        wanted: Wanted,
        matrix: Callable[..., Callable[..., Any]],
        target: Target,
        *,
        dynamic: Dynamic,
    ) -> None:
        if not isinstance(wrt, (int, str)):
            raise ArgumentError(
                f"wrt={wrt!r}: a matrix of derivatives needs a position or a name, or a tuple of them, as in wrt=(0, 1)"
            )
        super().__init__(function, wrt, target, dynamic=dynamic)
        self.wanted, self.options, self._matrix = wanted, (wanted,), matrix
        self.values = int(wanted.with_value)

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for argument types like those of ``args``."""
        return _Matrix(self, function, args)

    def otherwise(self, function: Callable[..., Any], leaf: Leaf, reason: Instead) -> Rows | Joint:
        """The function that computes the matrices without straight-line code."""
        if reason.what is None:
            return Joint(function, leaf.argument, self.wanted, self._matrix)
        return Rows(function, leaf.argument, self.wanted, self.target, dynamic=self.dynamic, size=reason.what)

    def worth(self, target: Target) -> Worth | None:
        """Lengths from which ops that repeat become a loop."""
        soon = self.wanted.order == 2 and target.name == "numpy" and target.effort == "quick"
        return _SOON if soon else super().worth(target)

    def leaf(self, function: Callable[..., Any], arguments: Arguments) -> Leaf:
        """The array or number to differentiate by, or the first leaf of a structure."""
        return arguments.leaves[layout_of(function, self.wrt, len(self.hidden), arguments).wanted[0]]

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the derivatives on the tape of a running trace."""
        call = inside(self.function, (*self.hidden, *args), kwargs)
        layout, forms = layout_of(call.function, self.wrt, len(self.hidden), call.plain), list[ResultForm]()
        by = call.plain.leaves[layout.wanted[0]]
        if self.wanted.sparse:
            raise TracingError("a sparse matrix cannot be recorded; leave sparse=True out inside a traced function")
        try:
            if by.path:
                raise Instead(None)
            how = {"registry": call.trace.registry, "rolls": call.trace.rolls}
            recorded = rolled(self.recorded(call.function, call.plain, layout, forms, **how))
            found = straight_line(recorded.tape, layout.wanted[0], self.wanted, call.trace.registry, Target())
            if found is None:
                raise Instead(largest(recorded.tape))
        except Instead as reason:
            return self.otherwise(call.function, by, reason)(*call.arguments.values)
        places = zip(recorded.tape.inputs, found.tape.inputs, strict=True)
        outer = {new.variable: recorded.outer[old.variable] for old, new in places if old.variable in recorded.outer}
        gradient = Gradient.of(recorded, found.tape, layout.wanted, forms if self.wanted.joined else ())
        return self.result(gradient, layout, call.inline(found.tape, outer))

    def recorded(
        self, function: Callable[..., Any], arguments: Arguments, layout: Layout, forms: list[ResultForm], **how: Any
    ) -> Recording:
        """A recording of the parts of the result, or of their vector.

        Raises Instead if the result is a structure.
        """
        flat = parted(function, forms, joined=self.wanted.joined)
        if how.get("exact"):
            return super().recorded(_as_one(flat), arguments, layout, forms, **how)
        found = super().recorded(flat, arguments, layout, forms, **how)
        if self.wanted.order == 1 and not self.wanted.joined and forms[-1].is_structured:
            raise Instead(None, found.ran)
        return found

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """The tape of all entries, and their positions if requested."""
        leaf = only_leaf(layout, arguments)
        entries, relied = self._entries(recorded, leaf, arguments)
        rows = CompressedRows.of(entries.rows, entries.columns, entries.shape) if self.wanted.sparse else None
        found = Gradient.of(recorded, entries.tape, (leaf,), forms if self.wanted.joined else ())
        return replace(found, rows=rows, relied=relied)

    def _entries(self, recorded: Recording, leaf: int, arguments: Arguments) -> tuple[Entries, Mapping[int, Any]]:
        """The entries as scalar code, or as a few array products, and the inputs that the pattern depends on."""
        wanted, tape = self.wanted, recorded.tape
        if _LONG < tape.types[tape.inputs[leaf].variable].size > len(tape):
            with contextlib.suppress(DifferentiationError, ArgumentError):
                return self._compressed(recorded, leaf, arguments)
        size = tape.types[tape.inputs[leaf].variable].size
        if wanted.order == 2 and not wanted.sparse and self.target.effort == "quick":
            if _are_scalar([op for op in tape.ops if op.regions]) and size <= _LONG:
                return row_by_row(sloped(tape, leaf, registry()), leaf, wanted, registry()), {}
            value = pipeline.run(tape, inlined=False, once=True)
            scalar = is_scalar(value, inlined=False)
            slope = slope_of(value, leaf, registry()) if scalar else None
            found = None
            if slope is not None and (len(slope) <= _LONG_CODE or size > _FEW):
                found = short_hessian(slope, leaf, wanted, registry())
            fell_apart = scalar and len(value) > _UNROLLED * len(tape)
            if found is None and (fell_apart or not scalar) and 0 < size * largest(tape) <= _MOST_TOGETHER:
                with contextlib.suppress(YotaError):
                    return stacked(tape, leaf, wanted, registry()), {}
            if found is None and slope is not None and size <= _LONG and self.target.name != "cuda":
                return row_by_row(slope, leaf, wanted, registry()), {}
            if found is None and (scalar or size <= _FEW):
                raise Instead(0 if scalar else largest(tape), recorded.ran)
        else:
            found = straight_line(tape, leaf, wanted, registry(), self.target)
        if found is not None:
            return found, {}
        try:
            return self._compressed(recorded, leaf, arguments)
        except (DifferentiationError, ArgumentError):
            if wanted.sparse:
                raise
            raise Instead(largest(tape), recorded.ran) from None

    def _compressed(self, recorded: Recording, leaf: int, arguments: Arguments) -> tuple[Entries, Mapping[int, Any]]:
        """The entries of array code; each call checks the inputs that the pattern depends on."""
        from yota.run.derivatives.compressed import compressed

        variables = [entry.variable for entry in recorded.tape.inputs]
        leaves = dict(zip(variables, (each.value for each in arguments.leaves), strict=False))
        values = {
            variable: value
            for variable, value in {**leaves, **recorded.captured}.items()
            if variable in recorded.captured or not recorded.tape.types[variable].differentiable
        }
        found, relied = compressed(recorded.tape, leaf, self.wanted, registry(), values)
        return found, {variables.index(variable): np.array(values[variable]) for variable in relied}

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile."""
        return simplified(gradient.tape, target)

    def result(self, gradient: Gradient, layout: Layout, outputs: Sequence[Any]) -> Any:
        """The matrix, with values before it if requested."""
        if gradient.rows is not None:
            outputs = (*outputs[:-1], gradient.rows.matrix(outputs[-1]))
        if gradient.aux is not None:
            outputs = (gradient.aux, *outputs)
        return tuple(outputs) if len(outputs) > 1 else outputs[0]


class _Matrix(Prepared):
    """Code for one combination of argument types: straight-line code, or functions of rows or of blocks."""

    owner: Matrices
    _others: Rows | Joint | None = None
    """Computes the matrices if there is no straight-line code, or none for one of the branches."""

    def __init__(self, owner: Matrices, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        leaf = owner.leaf(function, on_host(sort_arguments(function, args)))
        try:
            if leaf.path:
                raise Instead(None)
            super().__init__(owner, function, args)
        except Instead as reason:
            self.owner, self.made = owner, (owner.captured, owner.captured.changes)
            self._others = owner.otherwise(function, leaf, reason)

    def state(self) -> tuple[Any, ...]:
        """The captured state that the compiled code relies on; other functions check their own."""
        return super().state() if self._others is None else ()

    def entry(self, args: tuple[Any, ...], hidden: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any] | None:
        """A fast path, if available."""
        return super().entry(args, hidden) if self._others is None else None

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...], leaves: Sequence[Any]) -> tuple[Any, Any]:
        """The result, and the specialisation that computed it, if there is one."""
        try:
            if self._others is None:
                return super().__call__(function, args, leaves)
            found = self._others(*args)
        except Instead as reason:
            leaf = self.owner.leaf(function, on_host(sort_arguments(function, args)))
            self._others = self.owner.otherwise(function, leaf, reason)
            found = self._others(*args)
        known = self.owner.journal.parts
        known += [part for part in self._others.parts() if not any(part is each for each in known)]
        return found, None


def _are_scalar(loops: Sequence[Op]) -> bool:
    """Whether there are loops, and their trips compute with numbers."""
    return bool(loops) and all(is_scalar(op.keyword("region").body, inlined=False) for op in loops)


def _as_one(flat: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a tuple, changed to return an array."""

    def one(*args: Any) -> Any:
        found = flat(*args)
        return found[0] if len(found) == 1 else np.stack(found)

    one.__name__ = name_of(flat)
    return one
