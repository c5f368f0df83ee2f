"""Compiled code for one combination of argument types: lookup, checks, calls and recompilation."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.errors import StaleTapeError
from yota.ir.location import where
from yota.marks import Itself
from yota.run.arguments import Arguments, sort_arguments
from yota.run.compiled import CONTENT, OTHER_WAY
from yota.run.device import on_host, target_for
from yota.run.gradient_layout import layout_of
from yota.run.machine.signals import StaleTape
from yota.run.options import MOST_TAPES, follow
from yota.run.persistent import Place, place_of
from yota.run.progress import uncollected
from yota.run.specialise import Gradient, Instead, Specialisation, Target, compile_tape, loaded, source_of
from yota.tracing.captured.checks import Check, Contents, checks
from yota.tracing.captured.reach import bearers

if TYPE_CHECKING:
    from yota.ir.tape import Guard, Tape
    from yota.run.derivatives.differentiated import Differentiated
    from yota.run.machine.c_dispatch import Form
    from yota.run.selects import Merged


Part: TypeAlias = "Callable[[Any], Any]"
"""What a caller gets of a result."""
Entry: TypeAlias = "Callable[..., Any]"

_FAILURES = (StaleTape, ValueError, IndexError)
"""What a failed guard raises, and what code may raise in its place; see `Specialisation.run`."""
_REPEATED = 3
"""Number of guards by one condition from which it is worth a loop."""
_NUMBERS = (float, complex, np.float64, np.complex128, np.float32, np.complex64)
"""Types of numbers that generated code takes and returns."""


class Prepared:
    """Code of a `Differentiated` for one combination of argument types."""

    interprets: bool | None = None
    """Whether the function is recorded from its source, for its loops; None if that was not tried."""
    sized = False
    """Whether the generated function takes arrays of any size and checks them itself."""
    calls = 0
    """Number of calls that looked it up by argument types."""
    _entries: tuple[Any, dict[Part, Entry | None]] = None, {}
    """The captured state, and the entries for it."""

    def __init__(self, owner: Differentiated, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.owner, self.made = owner, (owner.captured, owner.captured.changes)
        arguments = sort_arguments(function, args)
        owner.captured.take(bearers(args))
        self._wanted = target_for(owner.target, arguments)
        self.target = self._wanted.first
        self.layout = layout_of(function, owner.wrt, len(owner.hidden), on_host(arguments))
        self.root = self._specialise(function, arguments)
        self.tapes = [self.root]
        """All specialisations of the decision tree."""
        self._leaves = len(arguments.leaves)

    def owned_by(self, owner: Differentiated) -> Prepared:
        """The same compiled code for another function with equal captured data."""
        found = copy.copy(self)
        found.owner, found._entries, found.made = owner, (None, {}), (owner.captured, owner.captured.changes)
        return found

    def is_current(self) -> bool:
        """Whether no change since the compilation was detected."""
        captured, changes = self.made
        return captured is self.owner.captured and changes == captured.changes

    def state(self) -> tuple[Any, ...]:
        """The captured state that the compiled code relies on, compared by identity."""
        return self.owner.captured.state, self.root, len(self.tapes)

    def checks(self) -> list[Check]:
        """Checks that must hold for the compiled code to be valid."""
        return checks(self.owner.captured.state, [each.gradient.contents for each in self.tapes])

    def entry(self, args: tuple[Any, ...], hidden: tuple[Any, ...], part: Part) -> Entry | None:
        """A fast path from the caller's arguments, which follow the ``hidden`` ones, to the ``part`` of the result."""
        from yota.run.derivatives.call_entry import entry

        state = *self.state(), *map(Itself, hidden)
        if any(each.gradient.is_particular for each in self.tapes):
            return None
        if self._entries[0] != state:
            self._entries = state, {}
        known = self._entries[1]
        if part not in known:
            known[part] = entry(args, hidden, self.root, self._shaped(part), self.checks(), sized=self.sized)
        return known[part]

    def _shaped(self, part: Part) -> Callable[[Specialisation, Sequence[Any]], Any]:
        """The function of the part of the result."""
        return lambda chosen, outputs: part(self.result(chosen, outputs))

    def form(self, args: tuple[Any, ...], part: Part) -> Form | None:
        """The generated function for dispatch in C, if it takes the arguments unchanged."""
        from yota.run.derivatives.call_entry import STATIC, arrangement, as_items, kinds_of
        from yota.run.machine.c_dispatch import MOST_PARTS, Form, split_form

        gradient = self.root.gradient
        leaves = [each for each in _parts(args) if type(each) not in STATIC]
        unchanged = not self.owner.hidden and self._leaves == len(leaves) and all(map(_exact, leaves))
        if not unchanged:
            return None
        arranged, kinds = arrangement(self.root, self._shaped(part)), tuple(kinds_of(args))
        if arranged is None or (len(kinds) > MOST_PARTS and any(len(each) == 2 for each in kinds)):
            return None
        count = len(gradient.tape.outputs)
        outputs = [("output", number) for number in range(count)]
        call: Callable[..., Any] | None = (sole_ufunc(gradient.tape) or self.root.call) if count else None
        if arranged == ("tuple", (*outputs[:1], ("tuple", (*outputs[1:],)))) and (split := split_form(call)):
            call, arranged = split, None
        elif arranged == (outputs[0] if count == 1 else ("tuple", (*outputs,))):
            arranged = None
        failures = _FAILURES if gradient.tape.guards else ()
        return Form(call, kinds, gradient.captured, arranged, as_items(self.checks()), failures)

    def _specialise(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        why: str = "",
        gradient: Gradient | None = None,
        merged: Merged | None = None,
    ) -> Specialisation:
        arguments = self.owner.named(arguments)
        with uncollected(), self.owner.journal.compiling(arguments, self.target.name, why) as made:
            place = None if merged else self._place(function, arguments)
            kept = None if place is None or why.endswith(OTHER_WAY) else self._kept(place, arguments)
            if kept is not None:
                found, how = kept
                made(found.gradient.tape, found.source, how)
            else:
                try:
                    gradient = gradient or self.gradient(function, arguments)
                except Instead as reason:
                    if place is not None:
                        place.refuse(reason)
                    raise
                found = self._compiled(gradient, place, merged)
                made(found.gradient.tape, found.source)

        def code(target: Target) -> tuple[Callable[..., Any], Tape, str] | None:
            if not any(each is found for each in self.tapes):
                # The tape has been merged with another one since.
                return None
            call, found.source = self._code(found.gradient, target, merged)
            return call, found.gradient.tape, found.source

        found.call = self.owner.journal.going_on(arguments, self._wanted, found.call, code)
        return found

    def _compiled(self, gradient: Gradient, place: Place | None, merged: Merged | None) -> Specialisation:
        from yota.run.selects import Merged

        captured = self.owner.captured
        captured.take(gradient.ran)
        # Changes that the function itself made to lists and caches during the trace do not invalidate the code.
        captured.absorb()
        # The function may have computed with captured arrays that compiled code reads at each call.
        fresh = captured.read_each_call(gradient.captured, gradient.observed)
        contents = Contents.of(gradient.contents.pairs, captured.parts(), fresh)
        gradient = replace(gradient, contents=contents)
        if merged:
            return Specialisation(gradient, *self._code(gradient, self.target, merged), merged=merged)
        # `grad`, which has no wrt, returns the tape of each call.
        mergeable = self.owner.dynamic and self.owner.wrt is not None and self.target.name != "cuda"
        merged = Merged.of(gradient.recorded) if mergeable and gradient.recorded else None
        gradient = replace(gradient, recorded=None)
        return Specialisation(gradient, *self._code(gradient, self.target, place=place), merged=merged)

    def _code(
        self, gradient: Gradient, target: Target, merged: Merged | None = None, place: Place | None = None
    ) -> tuple[Callable[..., Any], str]:
        """The generated function of a gradient and its source, which is saved to a place if given."""
        if merged:
            gradient = replace(gradient, tape=merged.unguarded(gradient.tape))
        tape = self.owner.shortened(gradient, target, self.target)
        values = gradient.values if merged or gradient.aux else self.owner.values
        if place is None:
            call, text = compile_tape(tape, target, values=values)
            return merged.checked(call) if merged else call, text
        source = source_of(tape, target, values)
        place.save(gradient, source)
        return loaded(source), source.text

    def _place(self, function: Callable[..., Any], arguments: Arguments) -> Place | None:
        """The place in the persistent cache of the code for such arguments."""
        owner = self.owner
        names = () if function is owner.function else function.names  # type: ignore[attr-defined]
        options = type(owner).__qualname__, owner.wrt, len(owner.hidden), owner.has_aux, *owner.options, names
        return place_of(owner.function, bearers(arguments.values), arguments, options, self.target, owner.journal)

    def _kept(self, place: Place, arguments: Arguments) -> tuple[Specialisation, str] | None:
        """Code from the persistent cache, if its guards hold for these arguments; and its origin."""
        known = place.load(arguments)
        if known is None:
            return None
        gradient, source, how = known
        self.owner.captured.take(gradient.ran)
        self.owner.captured.absorb()
        found = Specialisation(gradient, self.loaded(source, gradient), source.text)
        if gradient.tape.guards:
            try:
                found.run([leaf.value for leaf in arguments.leaves])
            except Exception:  # noqa: BLE001  (whatever it is, tracing shows what there is to say of it)
                return None
        return found, how

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape to compile."""
        if self.interprets:
            from yota.tracing.rewriting.interpreted import interpreted

            function = interpreted(function)
        return self.owner.gradient(function, on_host(arguments), self.layout, self.target)

    def loaded(self, source: Any, gradient: Gradient) -> Callable[..., Any]:
        """The function that generated source defines; it returns the outputs of the tape."""
        return loaded(source)

    def result(self, chosen: Specialisation, outputs: Sequence[Any]) -> Any:
        """The caller's result."""
        return self.owner.result(chosen.gradient, self.layout, outputs)

    def __call__(
        self, function: Callable[..., Any], args: tuple[Any, ...], leaves: Sequence[Any]
    ) -> tuple[Any, Specialisation]:
        """The caller's result, and the specialisation that computed it."""
        if any(each.gradient.contents.changed() or not each.gradient.fits(leaves) for each in self.tapes):
            with self.owner.table.lock:
                self.root = self._specialise(function, sort_arguments(function, args), CONTENT)
                self.tapes = [self.root]
        try:
            chosen, outputs = self.root.run(leaves)
        except StaleTapeError:
            with self.owner.table.lock:
                chosen, outputs = self._followed(function, args, leaves)
        if not isinstance(outputs, tuple):
            outputs = (outputs,)
        return self.result(chosen, chosen.gradient.completed(outputs, leaves)), chosen

    def _followed(self, function: Callable[..., Any], args: tuple[Any, ...], leaves: Sequence[Any]) -> Any:
        """Run the tape of the branches that are taken now, which is recorded if there is none."""
        # Another thread may have replaced the tape. One that stands for a recording may not stand for these values.
        for _ in range(2):
            try:
                return self.root.run(leaves)
            except StaleTapeError as fault:
                self._follow(function, sort_arguments(function, args), fault)
        try:
            return self.root.run(leaves)
        except StaleTapeError as fault:
            # A tie that code decides by other bits than NumPy's, whatever is recorded: a tape of these bits follows.
            guard = fault.missed.gradient.tape.guards[fault.decision[0]]
            if self.target.strict or self.target.name == "cuda" or guard.kind == "points":
                raise
            self._wanted = replace(self._wanted, strict=True)
            self.target = self._wanted.first
            why = f"{where(guard.location)}{OTHER_WAY}"
            self.root = self._specialise(function, sort_arguments(function, args), why)
            self.tapes = [self.root]
        return self.root.run(leaves)

    def _follow(self, function: Callable[..., Any], arguments: Arguments, fault: StaleTapeError) -> None:
        """Record the branch that is taken now; merge the recording with the failed tape, or add it as another tape."""
        from yota.run.selects import Alone

        missed = fault.missed
        guard = missed.gradient.tape.guards[fault.decision[0]]
        why = f"{where(guard.location)}{OTHER_WAY}"
        gradient = None
        if missed.merged is not None and not fault.layout and not isinstance(fault.decision[1], Alone):
            gradient = self.gradient(function, arguments)
            merged = missed.merged.joined(gradient.recorded) if gradient.recorded else None
            if merged is missed.merged:
                # Changes that the function itself made do not invalidate the code.
                if self.owner.captured.changed():
                    self.owner.captured.absorb()
                return
            if merged is not None:
                with contextlib.suppress(Instead):
                    derived = self.owner.derived(merged.merged(), on_host(arguments), self.layout, target=self.target)
                    found = self._specialise(function, arguments, why, derived, merged)
                    self._replace(missed, found)
                    return
        looped = self._looped(function, arguments, missed.gradient.tape.guards, guard)
        if looped is not None:
            self.root = self._specialise(function, arguments, why, looped)
            self.tapes = [self.root]
            return
        follow(self.owner.dynamic, fault, guard, len(self.tapes))
        found = self._specialise(function, arguments, why, gradient)
        if len(self.tapes) < MOST_TAPES:
            missed.insert(found, fault.decision)
            self.tapes = [*self.tapes, found]
        else:
            self.root, self.tapes = found, [found]

    def _looped(
        self, function: Callable[..., Any], arguments: Arguments, guards: Sequence[Guard], failed: Guard
    ) -> Gradient | None:
        """One tape for every number of trips of the loop that ended another way; None if it is not one loop."""
        place = failed.location
        trips = sum(each.location == place for each in guards)
        may = self.owner.dynamic and self.interprets is None and not self.target.strict
        if not (may and trips >= _REPEATED and place is not None):
            return None
        self.interprets = True
        with contextlib.suppress(Exception):  # what cannot run from its source is recorded as before
            found = self.gradient(function, arguments)
            if any(op.regions and op.keyword("region").condition is not None for op in found.tape.ops):
                return found
        self.interprets = False
        return None

    def _replace(self, known: Specialisation, other: Specialisation) -> None:
        """Replace a tape by ``other``, which was merged from it."""
        other.branches.update(known.branches)
        self.root = other if known is self.root else self.root
        self.tapes = [other if each is known else each for each in self.tapes]
        for each in self.tapes:
            for decision, following in [*each.branches.items()]:
                if following is known:
                    each.branches[decision] = other


def _exact(value: Any) -> bool:
    """Whether generated code can take ``value`` unchanged and return its gradient unchanged."""
    return type(value) in _NUMBERS or (type(value) is np.ndarray and value.ndim > 0 and value.dtype.isnative)


def _parts(values: Sequence[Any]) -> Iterator[Any]:
    """Values, with the items of structures in place of these."""
    from yota.run.derivatives.call_entry import structure_of

    for value in values:
        structure = structure_of(value)
        if structure is None:
            yield value
        else:
            yield from _parts(structure[1])


def sole_ufunc(tape: Tape) -> Callable[..., Any] | None:
    """The function of SciPy's that is all that a tape does, in the order of its inputs."""
    op = tape.ops[0] if len(tape.outputs) == 1 == len(tape.ops) else None
    if op is None or op.static or not (op.semantics.ufunc and op.semantics.quiet):
        return None
    inputs = tuple(each.variable for each in tape.inputs)
    return op.primitive.function if (op.operands, (op.result,)) == (inputs, tape.outputs) else None
