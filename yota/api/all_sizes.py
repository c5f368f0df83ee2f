"""Value and gradient compiled once for all sizes of the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from yota.emit.targets.generated import Source
from yota.errors import ArgumentError, CodegenError, StaleTapeError
from yota.ir.callables import name_of
from yota.ir.location import where
from yota.ir.plain_text import visible
from yota.ir.tape import Tape
from yota.package.assembly import collected
from yota.package.c.c_contents import FUNCTION, joined
from yota.package.request import Request, axes, called
from yota.package.size_checks import compared, is_finite, is_single, trials
from yota.package.subject import Call, call_of
from yota.run.arguments import Arguments, key_of, positional, sort_arguments
from yota.run.derivatives.differentiated import Differentiated
from yota.run.derivatives.prepared import Prepared
from yota.run.gradient_layout import Wrt
from yota.run.machine import native
from yota.run.machine.python import load
from yota.run.options import Dynamic
from yota.run.persistent import Place
from yota.run.selects import Merged
from yota.run.specialise import Gradient, Specialisation, Target
from yota.tracing.captured.checks import Contents
from yota.tracing.replay import ASYMMETRIC


class AllSizes(Differentiated):
    """Value and gradient for arguments with named sizes, compiled once.

    args: specs of its arguments, by name or in order; see `yota.generate`.
    wrt: arguments to differentiate by; see `yota.value_and_grad`.
    target: NumPy, or "auto".
    """

    def __init__(self, function: Callable[..., Any], args: Any, wrt: Wrt, target: Target) -> None:
        super().__init__(function, wrt, target, dynamic=False)
        self.call = call_of(function, args)
        self.options = tuple(map(str, self.call.specs)), self.call.names, target.name
        self.journal.name = f"value_and_grad of {name_of(self.function)}"
        # Structure and static values are the same at all sizes; these come from one size.
        call = self.call.with_axes(axes(2))
        self.sample, arguments = call.arguments({name: 5 + place for place, name in enumerate(call.dimensions())})
        self.sampled, self._form = arguments.values, _form(arguments)
        self._are_plain = all(not leaf.path for leaf in arguments.leaves) and len(arguments.leaves) == len(self._form)
        self.table.insert((), _Sized(self, self.sample, self.sampled))

    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Prepared, Callable[..., Any], tuple[Any, ...], list[Any]]:
        """The compiled form, the same for all calls; see `Differentiated.prepare`."""
        with self.table.lock:
            if self.captured.changed():
                self.forget()
            if not self.table:
                self.table.insert((), _Sized(self, self.sample, self.sampled))
            if self._are_plain and not kwargs and len(args) == len(self._form):
                return self.table[()], self.sample, args, list(args)
            return self.table[()], *self._sorted(args, kwargs)

    def _sorted(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], list[Any]]:
        """The call with its arguments by position, checked against the specs, and their leaves."""
        function, values = positional(self.function, (*self.hidden, *args), kwargs)
        arguments = sort_arguments(function, values)
        if _form(arguments) != self._form:
            wanted = ", ".join(f"{name}={spec}" for name, spec in zip(self.call.names, self.call.specs, strict=True))
            raise ArgumentError(
                f"{name_of(self.function)} was compiled for args of the structure {visible(wanted)}; this call has "
                "another structure or other static values. Give the specs of what it is called with, or leave args= out"
            )
        return function, values, [leaf.value for leaf in arguments.leaves]


@dataclass(frozen=True, slots=True, eq=False)
class _Source(Source):
    """The NumPy code, and the C text to go on with; if that is empty, ``without`` says why."""

    code: str = ""
    without: str = ""


class _Sized(Prepared):
    """Compiled value and gradient for all sizes."""

    owner: AllSizes
    sized = True

    def _specialise(self, function: Any, arguments: Arguments, *given: Any, **more: Any) -> Specialisation:
        sample = self.owner.sample
        return super()._specialise(sample, sort_arguments(sample, self.owner.sampled), *given, **more)

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape at one size. The code for all sizes is traced, generalised and tested separately."""
        traced = super().gradient(function, arguments)
        owner, strict = self.owner, self.owner.target.strict
        call = replace(owner.call, recorded={}, literals=set())
        request = Request(
            call, "numpy", None, owner.wrt, ("gradient",), "", False, strict, False, ("yota",), laid_out=False
        )
        (text,) = collected(request)[0].values()
        code, without = "", ""
        if owner.target.name == "auto":
            try:
                code = joined(request)
            except (ArgumentError, CodegenError) as fault:
                without = str(fault).partition("\n")[0]
        self._source = _Source(text, f"{called(request.wish)}_value_and_gradient", code=code, without=without)
        # The code contains all captured data as constants.
        return replace(traced, captured=(), contents=Contents.of(traced.contents.pairs, traced.captured, ()))

    def _code(
        self, gradient: Gradient, target: Target, merged: Merged | None = None, place: Place | None = None
    ) -> tuple[Callable[..., Any], str]:
        if target.name == "c":
            return self._in_c(gradient), self._source.code
        if place is not None:
            place.save(gradient, self._source)
        return self.loaded(self._source, gradient), self._source.text

    def loaded(self, source: _Source, gradient: Gradient) -> Callable[..., Any]:
        """The function of the outputs of the tape."""
        self._source = source
        function = load(source)
        function.__globals__["_precondition"] = functools.partial(_stale, gradient.tape)
        wanted = self.layout.wanted
        if len(wanted) == 1:
            return function
        places = [wanted.index(leaf) for leaf in gradient.leaves]

        def flat(*leaves: Any) -> tuple[Any, ...]:
            value, parts = function(*leaves)
            return value, *[parts[place] for place in places]

        return flat

    def _in_c(self, gradient: Gradient) -> Callable[..., Any]:
        """The same function in C; NumPy code computes, or refuses, what C refuses."""
        if not self._source.code:
            raise CodegenError(self._source.without)
        given, known = getattr(native.build(self._source.code), FUNCTION), self.loaded(self._source, gradient)
        places = [1 + self.layout.wanted.index(leaf) for leaf in gradient.leaves]

        def call(*leaves: Any) -> tuple[Any, ...]:
            try:
                value = given(*leaves)
            except (TypeError, ValueError, IndexError, OverflowError):
                return known(*leaves)  # type: ignore[no-any-return]
            return value[0], *[value[place] for place in places]

        _hold(self.owner.call, call, known)
        return call

    def _follow(self, function: Callable[..., Any], arguments: Arguments, fault: StaleTapeError) -> None:
        raise fault


def _form(arguments: Arguments) -> tuple[Any, ...]:
    """Structure and static values of arguments, without their leaves."""
    zeros = [0.0] * len(arguments.leaves)
    return tuple(key_of(value, []) for value in arguments.rebuild(zeros))


def _stale(tape: Tape, number: int, found: object) -> StaleTapeError:
    """The error of a guard that failed."""
    guard = tape.guards[number]
    what = (
        ASYMMETRIC
        if guard.kind == "hermitian"
        else f"this branch was {guard.expected!r} when the function was traced and is {found} now; code for all "
        "sizes has one branch only. Use np.where,"
    )
    fault = StaleTapeError(f"{where(guard.location)}{what} or leave args= out and pass dynamic=True")
    fault.decision = (number, found)
    return fault


def _hold(call: Call, found: Callable[..., Any], known: Callable[..., Any]) -> None:
    """Raise unless both functions give the same at several sizes."""
    call = call.with_axes(axes(1))
    for size in trials(call.dimensions()):
        leaves = [leaf.value for leaf in call.arguments(size)[1].leaves]
        try:
            expected = known(*leaves)
        except Exception:  # noqa: BLE001  (whatever it is, there is nothing to compare with)
            continue
        if is_finite(expected):
            for one, other in zip(found(*leaves), expected, strict=True):
                compared(one, other, f"the C code at {size}", single=is_single([*leaves, *expected]))


def check_options(target: str | None, dynamic: Dynamic, has_aux: bool) -> None:
    """Refuse options that code for all sizes does not support."""
    if target not in (None, "numpy", "auto"):
        raise ArgumentError(
            f"args= compiles for all sizes, which target='numpy' and 'auto' can; leave args= out for {target!r}"
        )
    if has_aux:
        raise ArgumentError("has_aux=True is not supported with args=; leave args= out")
    if dynamic is True:
        raise ArgumentError("dynamic=True traces again when a branch changes, args= never does; choose one")
