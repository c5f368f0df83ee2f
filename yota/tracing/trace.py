"""One recording: lifts values onto the tape, applies primitives, keeps concrete values beside variables."""

from __future__ import annotations

import gc
import operator
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from types import BuiltinFunctionType, FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import TracingError
from yota.ir import catalog
from yota.ir.catalog import primitive as built_in
from yota.ir.compact_recording import Recorder
from yota.ir.location import Location, where
from yota.ir.primitive import Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Keywords
from yota.ir.types import NUMBERS, TensorType, tuple_of, type_of
from yota.rules.registry import Registry
from yota.structures import is_on_device
from yota.tracing.captures import Captures, acceptable, copied, frozen, name_of
from yota.tracing.conversions import Conversion, FirstRun, Interpret, LongLoop
from yota.tracing.creation import array
from yota.tracing.current import innermost, paused
from yota.tracing.library_calls import library_call
from yota.tracing.methods import is_tracer, of_object
from yota.tracing.observation import Observation
from yota.tracing.outlets import Outlets
from yota.tracing.source_lines import caller, here, positions, source_line
from yota.tracing.traced_text import Text
from yota.tracing.tracer import Tracer

if TYPE_CHECKING:
    from yota.tracing.conversions import FirstRun
    from yota.tracing.traced_sizes import Decisions

_SCALARS = frozenset((bool, int, float, complex))
_LARGE = 1 << 16
"""Bytes from which the concrete value of an array is freed once nothing in the program refers to it."""
_SWEPT = 1 << 28
"""Bytes of new arrays after which such values are looked for."""
_MANY_GUARDS = 64
"""Decisions after which a loop is looked for that takes one in each trip."""
_OF_VALUES = (ArithmeticError, np.linalg.LinAlgError)
"""Exceptions that tell of the values of operands."""
_COMPILED = (BuiltinFunctionType, np.ufunc)
"""Functions that call none that are recorded."""


class Trace:
    """A recording in progress.

    live: whether arrays from outside are inputs; see `Captures`.
    shift: by how much of their size numbers that leave the tape come out off, to show whether they come back.
    reads, deep: whether the function, and SciPy's functions in Python, run from their sources.
    exact: whether the tape must give NumPy's bits: it holds calls as they are made, and the order of arrays in memory.
    keeps: whether what is computed from arrays that the function makes stays on the tape, not only its result.
    wide: whether new arrays of whole numbers and truths are traced too, so that traced values may be written there.
    """

    plain = Tracer
    """The class of traced values without a subclass of arrays."""

    def __init__(
        self,
        name: str,
        registry: Registry,
        *,
        live: bool = False,
        shift: float = 0.0,
        reads: bool = False,
        exact: bool = False,
        keeps: bool = False,
        wide: bool = False,
        deep: bool = False,
    ) -> None:
        self.builder = Recorder(name)
        self.registry = registry
        self.live, self.shift, self.reads, self.exact = live, shift, reads, exact
        self.keeps, self.wide, self.deep = keeps, wide, deep
        self.is_too_narrow = False
        """Whether a traced value came to be written into a plain array, which `wide` might mend."""
        self.values: dict[int, Any] = _Values(self)
        self._unswept, self._limit = 0, _SWEPT
        self.conversions: dict[int, Conversion] = {}
        self.texts: list[Text] = []
        """Texts of traced values, where the function runs from its source."""
        self.refused: TracingError | None = None
        """The last thing that was refused; the user's code may have caught it."""
        self.interrupted: Interpret | None = None
        """What ended the run, for another one from the source; compiled functions may have caught it."""
        self.first_run: FirstRun | None = None
        """The recording that came to an end before this one began, of the same function."""
        self.readable: Callable[[FrameType], bool] = lambda frame: False
        """Whether the function, and the code of a frame, can run from the source in the place of this trace."""
        self.has_loop: Callable[[FrameType | None], bool] = lambda frame: False
        """Whether the source of what is running shows a loop that can be recorded as one."""
        self.loop: Any = None
        """The outermost loop over a range that runs, where the function runs from its source."""
        self.outer: dict[int, Tracer] = {}
        self.finished = False
        self.sizes: Decisions | None = None
        """What records the decisions that the function takes on sizes; None if nothing does."""
        self.trips = 0
        """The most trips of the loop of which one is recorded, with its number as the first input; 0 without a loop."""
        self.branch = 0
        """The first variable of a branch that is recorded, which may not write what was there before; 0 outside."""
        self.path: list[Any] = []
        """The conditions of the branches that are recorded, one in the other."""
        around = innermost.stack[-1]
        self.outlets: Outlets = Outlets(None if around is None else around.outlets)
        self.tried: int = 0 if around is None else around.tried
        """How many statements that run now catch exceptions of operations."""
        self.warned: int = 0 if around is None else around.warned
        """How many of them catch NumPy's warnings, which it does not give while yota records."""
        self.failures: list[Any] = []
        """Conditions in which a trip raises an error."""
        self.rolls = False
        """Whether ops that repeat may become loops."""
        self.strides: dict[int, tuple[int, ...]] = {}
        self.arguments: set[int] = set()
        """What stands for the inputs, by identity."""
        self.reshaped: dict[int, Tracer] = {}
        """Arrays of which some reshape is a view or a copy, by identity."""
        self.written: Tracer | None = None
        """The array that was written last, while nothing else can have its variable."""
        self.unnamed: set[int] = set()
        """Arrays that the function made and has not used yet."""
        self.filled: dict[tuple[Any, ...], int] = {}
        """By dtype, shape, strides and element, the constant arrays of which all elements are equal."""
        self.ordered: Location | None = None
        """Where the function came to depend on how its arguments lie in memory; None if it does not."""
        self.unseeded = ""
        """What gave random numbers that no seed determines; empty if nothing did."""
        self._thread = get_ident()
        self.seen = Observation(calls=live)
        self.captures = Captures(self.builder, self.values, self.seen if live else None)
        self.intercepted: Mapping[int, Callable[..., Any]] = {}
        """By identity of a function that is a primitive for this trace, what records it."""
        self.direct: dict[np.ufunc, Primitive] = {}
        """Ufuncs that were found to be primitives, each of which is one op for all operands."""
        self.hold: Callable[[], None] = lambda: None
        """Puts recording forms into the namespaces of libraries, from now until the trace ends."""

    def input(self, value: Any, argument: int, name: str, path: tuple[Any, ...]) -> Tracer:
        """A traced input that holds ``value``."""
        variable = self.builder.input(type_of(value), argument, name, path)
        self.strides[variable] = np.asarray(value).strides
        found = self.wrap(variable, value)
        self.arguments.add(id(found))
        return found

    def wrap(self, variable: int, value: Any) -> Tracer:
        """A tracer for ``variable``, whose concrete value is ``value``."""
        self.values[variable] = value
        return Tracer(self, variable)

    def constant(self, value: Any) -> Tracer:
        """A tracer for a constant; ``value`` must not be written afterwards."""
        return self.wrap(self._intern(value), value)

    def is_constant(self, variable: int) -> bool:
        """Whether ``variable`` depends on no input."""
        return variable in self.builder.constants

    def varies(self, value: Any) -> bool:
        """Whether ``value``, or an item of a list or tuple, is traced and depends on an input."""
        if is_tracer(value):
            return not self.is_constant(self.lift(value))
        return type(value) in (list, tuple) and any(map(self.varies, value))

    def fixed(self, value: Any, problem: str, advice: str) -> Any:
        """The plain value of what depends on no input; that of anything else is refused."""
        if self.varies(value):
            raise self.refuse(problem, advice)
        return self.values[self.lift(value)] if is_tracer(value) else value

    def forget(self) -> None:
        """Free the concrete values: they are in a cycle with the traced ones, and may be large."""
        self.values.clear()
        self.values, self.written = _Freed(self), None

    def check(self, variable: int | None = None) -> None:
        """Refuse use, of ``variable``, after the recording ended or from another thread."""
        if self.finished:
            op = None if variable is None else self.builder.definition(variable)
            made = f", from {op.location}: `{source_line(op.location)}`," if op is not None and op.location else ""
            raise TracingError(
                f"a traced value{made} was used after {self.builder.name} had returned: it was kept in a variable, a "
                "structure, an attribute or a generator. Compute it again outside, or return it from the function."
            )
        if get_ident() != self._thread:
            self.refused = TracingError(
                "a traced value was used in another thread than the one that traces the function. "
                "Do the work in one thread while tracing, or make the threaded function a primitive with a rule."
            )
            raise self.refused

    def traced(self, value: Any) -> Any:
        """``value`` itself if it is a tracer, else a tracer for the constant."""
        if is_tracer(value):
            return value._plain()
        variable = self.lift(value)
        return Tracer(self, variable)

    def still(self, value: Any) -> Any:
        """``value`` as a constant of the derivative."""
        return self.apply(built_in("stop_gradient"), (self.traced(value),))

    def lift(self, value: Any) -> int:
        """The variable for ``value``: a tracer's own, or a constant."""
        kind = type(value)
        if kind in _SCALARS:
            known = self.conversions.get(id(value)) if self.conversions else None
            if known is not None:
                return known.variable
            variable = self.builder.interned.get((kind, value or repr(value)))
            return variable if variable in self.values else self._intern(value)
        if kind is Tracer or is_tracer(value):
            if value._trace is not self or self.finished:
                value._trace.check(value._variable)
                self.check()
            if value._variable in self.unnamed:
                self._name(value)
            return value._current() if value._trace is self else self._outer(value)
        known = self.conversions.get(id(value))
        if known is not None:
            return known.variable
        if kind is np.ndarray and value.dtype != object:
            return self.captures.array(value)
        if isinstance(value, np.generic):
            return self._intern(value)
        if is_on_device(value):
            return self.captures.from_device(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return self.captures.array(value)
        return self._lift_sequence(value)

    def _name(self, value: Tracer) -> None:
        """Call a new array what the function calls it where it first uses it."""
        self.unnamed.discard(value._variable)
        name = name_of(value)
        if name is not None:
            self.builder.names.setdefault(value._variable, name)

    def _outer(self, value: Tracer) -> int:
        """An input that stands for a value of the trace around this one."""
        variable = value._current()
        for known, tracer in self.outer.items():
            if tracer._trace is value._trace and tracer._variable == variable:
                return known
        inner = self.input(value._value(), -1, f"outer{len(self.outer)}", ())._variable
        self.outer[inner] = value._trace.wrap(variable, value._value())
        return inner

    def is_foreign(self, value: Any) -> bool:
        """Whether ``value`` is nothing that NumPy computes with."""
        if is_tracer(value) or type(value) in _SCALARS or isinstance(value, (np.ndarray, np.generic)):
            return False
        if isinstance(value, (list, tuple, range, int, float, complex)):
            return False
        return not (hasattr(value, "__array__") or is_on_device(value))

    def _lift_sequence(self, value: Any) -> int:
        if isinstance(value, (list, tuple, range, np.ndarray)):
            return self.lift(array(self, list(value) if isinstance(value, range) else value))
        if hasattr(value, "__array__"):
            return self.lift(of_object(self, value, np.asarray))
        if isinstance(value, (int, float, complex)):  # a subclass, such as an IntEnum
            return self.lift(operator.index(value) if isinstance(value, int) else +value)
        raise self.refuse(
            f"a {type(value).__name__} is used together with a traced value.",
            "Use numbers and arrays, or do it outside of the function.",
        )

    def _intern(self, value: Any) -> int:
        variable = self.builder.constant(acceptable(value))
        self.values[variable] = value
        return variable

    def apply(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        static: Mapping[str, Any] | None = None,
        *,
        python: Callable[..., Any] | None = None,
        depth: int = 0,
    ) -> Any:
        """Record ``primitive(*operands, **static)``, and compute it or ``python``; for ``depth`` see `record`."""
        held, variables, values = self.values, [], []
        for operand in operands:
            if type(operand) is Tracer and operand._base is None and operand._trace is self and not self.unnamed:
                variable = operand._variable
            else:
                variable = self.lift(operand)
            variables.append(variable)
            values.append(held[variable])
        compute = python or primitive.function
        try:
            if not static and type(compute) in _COMPILED:
                result = compute(*values)
            else:
                with paused():  # nothing in it is to be recorded
                    result = compute(*values, **(static or {}))
        except _OF_VALUES:
            if python is None:
                self._rely_on(variables)
            raise
        found = self.record(primitive, tuple(variables), static or (), result, depth)
        if self.tried and _may_fail(primitive, result, python, self.warned > 0):
            self.stays_finite(found)
        return found

    def stays_finite(self, found: Any) -> None:
        """Guard a result of code whose exceptions are caught: it is not finite where an operation raises one."""
        if not self.tried or not self.varies(found):
            return
        if not np.all(np.isfinite(found._value())):
            if self.warned:
                raise self.refuse(
                    "NumPy gives no warnings while yota records, so `except RuntimeWarning` is never entered.",
                    'Write with np.errstate(all="raise"): and except FloatingPointError:',
                )
            return
        tried, self.tried = self.tried, 0
        try:
            bool(np.all(np.isfinite(found)))
        finally:
            self.tried = tried

    def ruled(self, name: str, /, *operands: Any, **static: Any) -> Any:
        """Record the primitive that the registry has by that name; see `apply`."""
        return self.apply(self.registry.primitive(name), operands, static)

    def _rely_on(self, variables: Sequence[int]) -> None:
        """Guard what made an operation fail: code that catches the error goes on, and its tape holds there alone."""
        for variable in variables:
            value = copied(self.values[variable])
            here = self.wrap(variable, value)
            bool(np.all(np.equal(here, value) | (np.isnan(here) & np.isnan(value))))

    def operate(
        self, primitive: Primitive, python: Callable[[Any, Any], Any], left: Any, right: Any, depth: int = 3
    ) -> Any:
        """Record what an operator of Python's computes; for ``depth`` see `record`."""
        if type(left) is Tracer and left._base is None and left._trace is self and not self.unnamed:
            one = left._variable
        else:
            one = self.lift(left)
        if type(right) is Tracer and right._base is None and right._trace is self and not self.unnamed:
            two = right._variable
        else:
            two = self.lift(right)
        values = self.values
        try:
            result = python(values[one], values[two])
        except ArithmeticError:
            if type(values[one]) in _SCALARS and type(values[two]) in _SCALARS:
                bool(np.isfinite(primitive.function(left, right)))  # where Python raises, NumPy gives no finite number
            else:
                self._rely_on((one, two))
            raise
        found = self.record(primitive, (one, two), (), result, depth)
        if self.tried and _may_fail(primitive, result, python, self.warned > 0):
            self.stays_finite(found)
        return found

    def record(
        self, primitive: Primitive, variables: tuple[int, ...], static: Keywords, result: Any, depth: int = 0
    ) -> Any:
        """Record an op with a known ``result``; ``depth`` counts the frames to what called yota, if it is known."""
        if self.finished or get_ident() != self._thread:
            self.check()
        builder = self.builder
        constants, place = builder.constants, builder.place
        frame, kind = sys._getframe(depth or 1), type(result)
        if (
            depth
            # In a pattern the code that runs tells the line, at a third of the time.
            and place is not None
            and place.primitive is primitive
            and place.kind is kind
            and frame.f_code is place.code
            and frame.f_lasti == place.offset
            and (variables[0] not in constants or variables[-1] not in constants)
            and len(variables) == place.arity
            and (not static or place.fits(static))
            # What an element is written into has the type that it had before.
            and (not place.writes or builder.types[variables[0]] is place.type)
        ):
            number = builder.follow(place, variables, static)
            self.values[number] = result
            return Tracer(self, number)
        for variable in variables:
            if variable not in constants:
                constant = False
                break
        else:
            constant = not (self.keeps and any(np.ndim(self.values[variable]) for variable in variables))
        type_ = NUMBERS.get(kind)
        if type_ is None:
            if isinstance(result, (tuple, list)):
                return self._record_several(primitive, variables, static, result, constant)
            type_ = self._type_of(result, variables)
            # No element of an empty array depends on anything.
            constant = constant or (0 in type_.shape and not (self.exact or self.keeps))
        if constant:
            return self.constant(frozen(result))
        seen = self.seen
        found = seen.lines.get(frame.f_lasti) if frame.f_code is seen.code else None
        builder.location = found = found or seen.here(frame)
        variable = builder.emit(primitive, variables, static, type_)
        if place and depth and builder.place is place.following and frame.f_code is seen.code:
            place.code, place.offset = frame.f_code, frame.f_lasti
        self.values[variable] = result
        return Tracer(self, variable)

    def _type_of(self, result: Any, variables: tuple[int, ...]) -> TensorType:
        """The type of a new array, which is often that of the first operand; its bytes are counted."""
        self._unswept += result.nbytes
        if self._unswept > self._limit:
            self._sweep()
        for variable in variables:
            found = self.builder.types[variable]
            if found.dtype is result.dtype and found.shape == result.shape and not found.weak:
                return found
            break
        return type_of(result)

    def _sweep(self) -> None:
        """Free the values of large arrays that the function no longer refers to."""
        traced = {Tracer, *Tracer.__subclasses__()}
        live = {each.variable for each in self.conversions.values()}
        for each in gc.get_objects():
            if type(each) in traced and each._trace is self:
                live.add(each._variable)
                live.add(each._base_variable if each._base is not None else each._variable)
        values, retained = self.values, 0
        for variable, value in [*values.items()]:
            if type(value) is np.ndarray and _held(value) >= _LARGE:
                if variable in live or self.builder.definition(variable) is None:
                    retained += value.nbytes
                else:
                    del values[variable]
        self._unswept, self._limit = 0, max(_SWEPT, retained)

    def _record_several(
        self, primitive: Primitive, variables: tuple[int, ...], static: Keywords, results: Sequence[Any], constant: bool
    ) -> Any:
        """Record an op of several results, and read each; they come in the same kind of tuple or list."""
        for number, each in enumerate(results):
            if not isinstance(each, (*_SCALARS, np.generic, np.ndarray)) or type_of(each).dtype.kind not in "biufc":
                raise self.refuse(
                    f"result {number} of {primitive.name} is a {type(each).__name__}.",
                    "A function that is recorded as one op gives numbers and arrays of numbers.",
                )
        if constant:
            parts = [self.constant(frozen(each)) for each in results]
        else:
            self.builder.location = self.seen.here(sys._getframe(1))
            type_ = tuple_of([type_of(each) for each in results])
            whole = self.builder.emit(primitive, variables, static, type_)
            self.values[whole] = results
            parts = [
                self.wrap(self.builder.emit(built_in("item"), (whole,), {"index": number}, part), value)
                for number, (part, value) in enumerate(zip(type_.parts, results, strict=True))
            ]
        kind: Any = type(results)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)

    def decide(self, variable: int, kind: str, number: Any, *, signs: bool = False) -> None:
        """Note that Python saw ``number`` (a ``kind`` of ``variable``), or only its sign, and may act on it."""
        self.check()
        if not self.is_constant(variable):
            self.builder.location = self.seen.here(sys._getframe(1))
            self.builder.guard(variable, number, kind, signs=signs)
            if len(self.builder.guards) == _MANY_GUARDS and self.builder.alarm is not None:
                self.restart_in_loop()

    def rearranged(self, variable: int, value: Any) -> Any:
        """A tracer for the same elements, whose concrete ``value`` lies otherwise in memory."""
        return self.record(catalog.primitive("reshape"), (variable,), {"shape": value.shape}, value)

    def rely_on_order(self) -> None:
        """Note that what is recorded depends on how the arguments lie in memory."""
        if self.ordered is None:
            self.ordered = here()

    def restart(self, user: FrameType | None, *, deep: bool = False) -> None:
        """End the run, for another one from the source, also a library's if ``deep``: a value is to leave the tape."""
        if not self.reads and user is not None and self.readable(user):
            self.interrupted = Interpret(positions(user), deep=deep)
            raise self.interrupted

    def restart_in_loop(self) -> None:
        """End the run within a long loop, for another one from the source, which shows the loop."""
        first = self.first_run
        if self.has_loop(caller()) if first is None else not first.skipped:
            self.interrupted = LongLoop(positions(caller()))
            raise self.interrupted

    def loop_ends(self, loop: Any, filename: str, lines: Sequence[int], recorded: bool) -> None:
        """Note that a loop on these lines was ``recorded`` by one trip, or, of the outermost one, that it cannot be.

        A first run that ended there is then over; or so is this one, which began for the loop.
        """
        first = self.first_run
        if first is None or not (recorded or self.loop is loop) or not first.ended_in(filename, lines):
            return
        if recorded:
            first.over = True
        elif self.builder.alarm is not None and not first.over:
            self.restart_in_loop()

    def unrecorded(self, what: str, cure: str) -> TracingError:
        """The error for a call of a library that is not recorded; the message holds the rule to complete."""
        found = library_call(sys._getframe(1))
        return self.refuse(f"{what} is not recorded.", f"{cure} {found.advice() if found else ''}".strip())

    def refuse(self, what: str, cure: str) -> TracingError:
        """The error for something that cannot be recorded, with the user's line."""
        self.refused = TracingError(f"{where(here())}{what} {cure}")
        return self.refused


_HARMLESS = frozenset({operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs})
"""Operators of Python's numbers that raise no exceptions."""


def _may_fail(primitive: Primitive, result: Any, python: Callable[..., Any] | None, warned: bool) -> bool:
    """Whether an operation with such a result raises an exception where it has no finite one."""
    if type(result) in (float, complex):
        return python not in _HARMLESS
    return getattr(result, "dtype", np.dtype(bool)).kind in "fc" and (
        warned or primitive.semantics.access == AccessMap.MATRIX or "raise" in np.geterr().values()
    )


def _held(value: np.ndarray) -> int:
    """Bytes of memory that an array keeps in use: a view all that it is a view of."""
    return value.base.nbytes if isinstance(value.base, np.ndarray) else value.nbytes


class _Values(dict[int, Any]):
    """Concrete values by variable; a value that was freed is computed again."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        # Without a cycle the recording is freed at once.
        self._trace = weakref.proxy(trace)

    def __missing__(self, variable: int) -> Any:
        op = self._trace.builder.definition(variable)
        if op is None:
            raise KeyError(variable)
        with paused():
            return op.primitive.function(*(self[operand] for operand in op.operands), **dict(op.static))


class _Freed(_Values):
    """In the place of the values of a recording that has ended: there are none, and reading one is refused."""

    def __missing__(self, variable: int) -> None:
        self._trace.check(variable)
