"""Jacobians and Hessians of a function: straight-line code if possible, otherwise a pullback for each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import ArgumentError, TracingError
from yota.ir.callables import name_of
from yota.ir.inputs import Leaf
from yota.run.arguments import Arguments, sort_arguments
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.derivatives.prepared import Entry, Part, Prepared
from yota.run.device import on_host
from yota.run.gradient_layout import Layout, Wanted, layout_of, only_leaf
from yota.run.options import Dynamic
from yota.run.specialise import Gradient, Instead, Target, rolled, simplified
from yota.transform.sparse.csr import CompressedRows

if TYPE_CHECKING:
    from yota.api.row_pullbacks import Rows
    from yota.ir.tape import Tape
    from yota.run.derivatives.joint import Joint
    from yota.tracing.record import Recording
    from yota.tracing.results import ResultForm
    from yota.transform.rolling.periods import Worth


class Matrices(Differentiated):
    """``function`` with compiled code for its partial derivatives, for each combination of argument types.

    matrix: creates functions of such matrices by arguments at other positions.
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
                f"wrt={wrt!r}: a matrix of derivatives needs a position or a name, or a tuple of them, as in "
                "wrt=(0, 1). To evaluate it, call what is made: yota.jacobian(f)(x)"
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
            from yota.run.derivatives.joint import Joint

            return Joint(function, leaf.argument, self.wanted, self._matrix)
        from yota.api.row_pullbacks import Rows

        return Rows(function, leaf.argument, self.wanted, self.target, dynamic=self.dynamic, size=reason.what)

    def worth(self, target: Target) -> Worth | None:
        """Lengths from which ops that repeat become a loop."""
        from yota.transform.rolling.periods import Worth

        if self.wanted.order == 2 and target.name == "numpy" and target.effort == "quick":
            # Straight code is slow to compile, for the few calls of a Hessian.
            return Worth(trips=8, ops=192)
        return None

    def leaf(self, function: Callable[..., Any], arguments: Arguments) -> Leaf:
        """The array or number to differentiate by, or the first leaf of a structure."""
        return arguments.leaves[layout_of(function, self.wrt, len(self.hidden), arguments).wanted[0]]

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the derivatives on the tape of a running trace."""
        from yota.run.derivatives.inside import inside
        from yota.run.derivatives.matrix_entries import dense
        from yota.run.derivatives.straight_line import largest

        call = inside(*self.positional(args, kwargs))
        layout = layout_of(call.function, self.wrt, len(self.hidden), call.plain)
        forms: list[ResultForm] = []
        by = call.plain.leaves[layout.wanted[0]]
        if self.wanted.sparse:
            raise TracingError("a sparse matrix cannot be recorded; leave sparse=True out inside a traced function")
        try:
            if by.path:
                raise Instead(None)
            how = {"registry": call.trace.registry, "rolls": call.trace.rolls}
            recorded = rolled(self.recorded(call.function, call.plain, layout, forms, **how))
            found = dense(recorded, layout.wanted[0], self.wanted, Target(), call.trace.registry)
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
        """A recording of the parts of the result, or of their vector; raises Instead if the result is a structure."""
        from yota.tracing.results import parted

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
        from yota.run.derivatives.matrix_entries import entries as entries_of

        leaf = only_leaf(layout, arguments)
        entries, relied = entries_of(recorded, leaf, arguments, self.wanted, self.target)
        rows = CompressedRows.of(entries.rows, entries.columns, entries.shape) if self.wanted.sparse else None
        found = Gradient.of(recorded, entries.tape, (leaf,), forms if self.wanted.joined else ())
        return replace(found, rows=rows, relied=relied)

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

    def entry(self, args: tuple[Any, ...], hidden: tuple[Any, ...], part: Part) -> Entry | None:
        """A fast path, if available."""
        return super().entry(args, hidden, part) if self._others is None else None

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


def _as_one(flat: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns a tuple, changed to return an array."""

    def one(*args: Any) -> Any:
        found = flat(*args)
        return found[0] if len(found) == 1 else np.stack(found)

    one.__name__ = name_of(flat)
    return one
