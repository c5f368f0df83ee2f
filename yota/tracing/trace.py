"""One recording: lifts values onto the tape, applies primitives, keeps concrete values beside variables."""

from __future__ import annotations

import operator
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from yota.errors import ArgumentError, TracingError
from yota.ir import catalog
from yota.ir.catalog import primitive as built_in
from yota.ir.location import Location
from yota.ir.primitive import Primitive
from yota.ir.tape import Guard, TapeBuilder
from yota.ir.types import tuple_of, type_of
from yota.rules.registry import Registry
from yota.structures import is_on_device
from yota.tracing.bytecode import running
from yota.tracing.creation import array
from yota.tracing.location import caller, here, is_library, is_own, library_function, location_of, source_line, users
from yota.tracing.memory import owner_of
from yota.tracing.tracer import Tracer

__all__ = ["Leak", "Trace", "frozen"]

_PERTURBATION = 2.0**-17
_LITERAL = 16
"""Up to this many elements a constant array is worth spelling out in generated code."""
_SCALARS = (bool, int, float, complex)


class Leak:
    """A Python number that a traced value turned into; it is kept so that its identity stays unique."""

    __slots__ = ("guard", "library", "location", "number", "variable")

    def __init__(self, number: Any, variable: int, guard: Guard | None) -> None:
        self.number, self.variable, self.guard = number, variable, guard
        self.location, self.library = here(), library_function(sys._getframe(1))


class Trace:
    """A recording in progress.

    Parameters
    ----------
    name
        Name of the function.
    registry
        Rules that make functions primitives.
    live
        Whether arrays of floating-point numbers that come from outside are inputs, to be read afresh at each call
        of the compiled code, rather than constants.
    perturbed
        Whether numbers that leave the tape come out slightly off; two recordings, one of them perturbed,
        show whether such a number found its way back into the computation.
    exact
        Whether the tape must give NumPy's bits: calls are recorded as they are made, and so is the order of arrays in
        memory.
    """

    def __init__(
        self, name: str, registry: Registry, *, live: bool = False, perturbed: bool = False, exact: bool = False
    ) -> None:
        self.builder = TapeBuilder(name)
        self.registry = registry
        self.live = live
        self.perturbed = perturbed
        self.exact = exact
        self.values: dict[int, Any] = {}
        self.leaks: dict[int, Leak] = {}
        self.outer: dict[int, Tracer] = {}
        self.finished = False
        self._strides: dict[int, tuple[int, ...]] = {}
        self.reshaped: dict[int, Tracer] = {}
        """Arrays of which some reshape is a view or a copy, by identity."""
        self.ordered: Location | None = None
        """Where the function came to depend on how its arguments lie in memory; None if it does not."""
        self.unseeded = ""
        """What gave random numbers that no seed determines; empty if nothing did."""
        self._thread = threading.get_ident()
        self.captured = self.builder.captured
        """Arrays from outside that are inputs, by variable."""
        self.watched: list[tuple[Any, Any]] = []
        """Arrays from outside that are constants, each with the content that the tape relies on."""
        self.ran: dict[int, tuple[CodeType, dict[str, Any]]] = {}
        """Code of the user's that was running when something was recorded, and its global variables."""
        self.uses: dict[int, set[tuple[int, int]]] = {}
        """By the identity of what owns its memory, where the user's code handed over an array from outside."""
        self.calls: dict[tuple[int, int], list[tuple[CodeType, dict[str, Any]]]] = {}
        """What the user's code called, and the arrays among the arguments, by where it did."""
        self._captured: dict[int, tuple[Any, Any, int]] = {}
        self.intercepted: Mapping[int, Callable[..., Any]] = {}
        """By identity of a function that is a primitive for this trace, what records it."""
        self.hold: Callable[[], None] = lambda: None
        """Puts recording forms into the namespaces of libraries, from now until the trace ends."""

    # -- variables ---------------------------------------------------------------------------------------

    def input(self, value: Any, argument: int, name: str, path: tuple[Any, ...]) -> Tracer:
        """A traced input that holds ``value``."""
        variable = self.builder.input(type_of(value), argument, name, path)
        self._strides[variable] = np.asarray(value).strides
        return self.wrap(variable, value)

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

    def check(self, variable: int | None = None) -> None:
        """Refuse use, of ``variable``, after the recording ended or from another thread."""
        if self.finished:
            op = None if variable is None else self.builder.definition(variable)
            made = f", from {op.location}: `{source_line(op.location)}`," if op is not None and op.location else ""
            raise TracingError(
                f"a traced value{made} was used after {self.builder.name} had returned: it was kept in a variable, a "
                "structure, an attribute or a generator. Compute it again outside, or return it from the function."
            )
        if threading.get_ident() != self._thread:
            raise TracingError(
                "a traced value was used in another thread than the one that traces the function. "
                "Do the work in one thread while tracing, or make the threaded function a primitive with a rule."
            )

    def traced(self, value: Any) -> Any:
        """``value`` itself if it is a tracer, else a tracer for the constant."""
        if type(value) is Tracer:
            return value
        variable = self.lift(value)
        return Tracer(self, variable)

    def lift(self, value: Any) -> int:
        """The variable for ``value``: a tracer's own, or a constant."""
        if type(value) is Tracer:
            value._trace.check(value._variable)
            self.check()
            return value._current() if value._trace is self else self._outer(value)
        leak = self.leaks.get(id(value))
        if leak is not None:
            return leak.variable
        if type(value) in _SCALARS or isinstance(value, np.generic):
            variable = self._intern(self._acceptable(value))
            self.values[variable] = value
            return variable
        if is_on_device(value):
            return self._capture_from_device(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return self._capture(value)
        return self._lift_sequence(value)

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
        if type(value) is Tracer or type(value) in _SCALARS or isinstance(value, (np.ndarray, np.generic)):
            return False
        if isinstance(value, (list, tuple, int, float, complex)):
            return False
        return not (hasattr(value, "__array__") or is_on_device(value))

    def _lift_sequence(self, value: Any) -> int:
        if isinstance(value, (list, tuple, np.ndarray)):
            return self.lift(array(self, value))
        if hasattr(value, "__array__"):
            return self._capture(np.asarray(value))
        if isinstance(value, (int, float, complex)):  # a subclass, such as an IntEnum
            return self.lift(operator.index(value) if isinstance(value, int) else +value)
        raise self.refuse(
            f"a {type(value).__name__} is used together with a traced value.",
            "Use numbers and arrays, or do it outside of the function.",
        )

    def _capture(self, value: np.ndarray) -> int:
        # The array belongs to the user, who may write into it later: the tape never relies on that it does not.
        if self.live:
            self._note_use(value)
        known = self._captured.get(id(value))
        if known is not None and np.array_equal(known[1], value, equal_nan=value.dtype.kind in "fc"):
            return known[2]
        snapshot = frozen(np.array(self._acceptable(value)))
        if self.live and known is None and value.dtype.kind in "fc" and value.size > _LITERAL and value.dtype.isnative:
            variable = self.builder.input(type_of(value), -1, self._name_of(value), ())
            self.captured[variable] = value
        else:
            variable = self.builder.constant(snapshot)
            self.watched.append((value, snapshot))
        self.values[variable] = snapshot
        self._captured[id(value)] = (value, snapshot, variable)
        return variable

    def _note_use(self, value: np.ndarray) -> None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and is_own(frame):
            frame = frame.f_back
        if frame is None or is_library(frame) or caller(2) is not frame:
            return  # a library may have computed with the content
        self.uses.setdefault(id(owner_of(value)), set()).add((id(frame.f_code), running(frame).offset))

    def _capture_from_device(self, value: Any) -> int:
        """An array on the GPU is an input always: nobody would fetch it at each call to see whether it changed."""
        known = self._captured.get(id(value))
        if known is not None:
            return known[2]
        snapshot = frozen(value.get())
        variable = self.builder.input(type_of(snapshot), -1, self._name_of(value), ())
        self.captured[variable] = value
        self.values[variable] = snapshot
        self._captured[id(value)] = (value, snapshot, variable)
        return variable

    def _name_of(self, value: Any) -> str:
        """The name by which the user's code knows an array from outside."""
        for user in users(sys._getframe(1), inside=True):
            local, outside = (
                (user.f_locals, user.f_globals) if isinstance(user, FrameType) else (user.variables, user.globals)
            )
            for name, other in [*local.items(), *outside.items()]:
                if other is value and not name.startswith("_"):
                    return name
        return "data"

    def _acceptable(self, value: Any) -> Any:
        dtype = type_of(value).dtype
        if dtype.kind not in "biufc":
            raise ArgumentError(f"values of dtype {dtype} cannot be traced; use floating or complex numbers")
        if not dtype.isnative:
            return value.astype(dtype.newbyteorder("="))
        return value

    def _intern(self, value: Any) -> int:
        variable = self.builder.constant(value)
        self.values[variable] = value
        return variable

    # -- ops ---------------------------------------------------------------------------------------------

    def apply(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        static: Mapping[str, Any] | None = None,
        *,
        python: Callable[..., Any] | None = None,
    ) -> Any:
        """Record ``primitive(*operands, **static)`` and compute it; a tracer, or a tuple of them.

        ``python`` computes the value in its place, for operators, which treat Python scalars otherwise than
        NumPy's functions do.
        """
        variables = tuple(self.lift(operand) for operand in operands)
        values = tuple(self.values[variable] for variable in variables)
        result = (python or primitive.function)(*values, **(static or {}))
        return self.record(primitive, variables, static or {}, result)

    def record(self, primitive: Primitive, variables: tuple[int, ...], static: Mapping[str, Any], result: Any) -> Any:
        """Record an op whose concrete ``result`` is known already."""
        self.check()
        constant = all(variable in self.builder.constants for variable in variables)
        if isinstance(result, (tuple, list)):
            return self._record_several(primitive, variables, static, result, constant)
        if constant:
            return self.constant(frozen(result))
        self.builder.location = self._here()
        return self.wrap(self.builder.emit(primitive, variables, static, type_of(result)), result)

    def _record_several(
        self,
        primitive: Primitive,
        variables: tuple[int, ...],
        static: Mapping[str, Any],
        results: Sequence[Any],
        constant: bool,
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
            self.builder.location = self._here()
            type_ = tuple_of([type_of(each) for each in results])
            whole = self.builder.emit(primitive, variables, static, type_)
            self.values[whole] = results
            parts = [
                self.wrap(self.builder.emit(built_in("item"), (whole,), {"index": number}, part), value)
                for number, (part, value) in enumerate(zip(type_.parts, results, strict=True))
            ]
        kind: Any = type(results)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)

    def _here(self) -> Location | None:
        """The user's line that is running; its code, and that which called it, is noted."""
        innermost = None
        for user in users(sys._getframe(2), inside=True):
            innermost = innermost or user
            code, names = (user.f_code, user.f_globals) if isinstance(user, FrameType) else (user.code, user.globals)
            if id(code) in self.ran:
                break
            if code is not None:
                self.ran[id(code)] = code, names
            if isinstance(user, FrameType):
                self._note_call(user)
        innermost = innermost or caller(2)
        return None if innermost is None else location_of(innermost)

    def _note_call(self, frame: FrameType) -> None:
        """Note who called the code of ``frame``, and with which arrays."""
        outer = frame.f_back
        if not self.live or outer is None or is_library(outer):
            return
        code, values = frame.f_code, frame.f_locals
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        arrays = {name: values[name] for name in names if type(values.get(name)) is np.ndarray}
        self.calls.setdefault((id(outer.f_code), running(outer).offset), []).append((code, arrays))

    # -- leaving the tape --------------------------------------------------------------------------------

    def decide(self, variable: int, kind: str, number: Any) -> None:
        """Note that Python saw ``number`` (a ``kind`` of ``variable``) and may act on it."""
        self.check()
        if not self.is_constant(variable):
            self.builder.location = self._here()
            self.builder.guard(variable, number, kind)

    def rearranged(self, variable: int, value: Any) -> int:
        """Another variable for the same elements, whose concrete ``value`` lies otherwise in memory."""
        found: Tracer = self.record(catalog.primitive("reshape"), (variable,), {"shape": value.shape}, value)
        return found._variable

    def rely_on_order(self) -> None:
        """Note that what is recorded depends on how the arguments lie in memory."""
        if self.ordered is None:
            self.ordered = here()

    def guard_order(self) -> None:
        """If what was recorded depends on how the arguments lie in memory, guard that."""
        if self.ordered is None:
            return
        strided, element = catalog.primitive("strides"), catalog.primitive("getitem")
        self.builder.location = self.ordered
        for entry in self.builder.inputs:
            if entry.argument < 0 or self.builder.types[entry.variable].ndim < 2:
                continue
            strides = np.array(self._strides[entry.variable])
            found = self.builder.emit(strided, (entry.variable,), {}, type_of(strides))
            for axis, stride in enumerate(strides.tolist()):
                one = self.builder.emit(element, (found,), {"index": (axis,)}, type_of(strides[axis]))
                self.builder.guard(one, stride, "layout")

    def leak(self, variable: int, number: Any, *, returned: bool) -> Any:
        """A Python number that stands for ``variable`` off the tape, to be recognised when it comes back.

        ``returned`` says that the function itself seems to return it at once: if it does, no guard is needed.
        """
        if self.is_constant(variable):
            return number
        # The product is a new object even for a factor of one, so that its identity is its own. The perturbation moves
        # zeros as well, or a root finder would hide where its result came from.
        number = number + (abs(number) + 1.0) * _PERTURBATION if self.perturbed else number * 1.0
        self.leaks[id(number)] = Leak(number, variable, self.builder.guards[-1] if returned else None)
        return number

    def refuse(self, what: str, cure: str) -> TracingError:
        """The error for something that cannot be recorded, with the user's line."""
        location = here()
        where = f"{location}: `{source_line(location)}`: " if location else ""
        return TracingError(f"{where}{what} {cure}")


def frozen(value: Any) -> Any:
    """``value``, made read-only if it is an array."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.view()
        value.flags.writeable = False
    return value
