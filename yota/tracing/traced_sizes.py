"""Sizes of traced arrays as ints that record the decisions which Python takes on them."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from yota.ir.location import Location
from yota.ir.types import Record
from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.patching import Patch
from yota.tracing.source_lines import here, is_library, is_own, is_rule

Expression: TypeAlias = "tuple[Any, ...] | int | float"
"""``("extent", number)``, a plain number, or the name of an operator with the expressions of its operands."""

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_STEPS = ("floordiv", "mod", "rshift", "and_", "or_", "xor")
"""Operators with results that are constant over many sizes, or follow another formula at others."""
_ESCAPES = ("__hash__", "__repr__", "__str__", "__format__", "bit_length", "bit_count", "to_bytes", "as_integer_ratio")
"""Methods of numbers whose results no longer tell that they come from sizes."""
ESCAPE = "escape"
"""The decision to call one of these methods."""
_STEP_UFUNCS = {np.minimum, np.maximum, np.fmin, np.fmax, np.floor_divide, np.remainder, np.fmod, np.sign, np.heaviside}
_STEP_UFUNCS |= {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal, np.floor, np.ceil}
_STEP_UFUNCS |= {np.trunc, np.rint, np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.right_shift}
_TRIPS = 8
"""Ends of slices of one line, all of them inside, from which on it is taken to be in a loop."""


@dataclass(frozen=True, slots=True)
class Decision:
    """An operation on sizes, as ``"lt"``, whose outcome may be another one at other sizes."""

    operation: str
    operands: tuple[Expression, ...]
    outcome: Any
    location: Location | None
    is_library: bool = False


@dataclass(slots=True, eq=False)
class Decisions:
    """The decisions on sizes of one recording."""

    taken: list[Decision] = field(default_factory=list)
    closed: bool = False
    """Whether the recording is over."""
    _moving: dict[Location | None, set[int]] = field(default_factory=dict)
    """By line, where slices that it takes end."""

    def extent(self, number: int) -> int:
        """An extent of an array."""
        return cast(int, Size(self, ("extent", int(number)), number))

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape as the function gets it that asked for it: yota's own code gets plain ints."""
        frame = sys._getframe(2)
        while frame.f_code.co_name in ("size", "nbytes") and is_own(frame) and frame.f_back is not None:
            frame = frame.f_back
        if is_own(frame) and not is_rule(frame):
            return tuple(shape)
        return tuple(map(self.extent, shape))

    def slice(self, entry: slice, extent: int) -> None:
        """Note where the ends of a slice lie in an axis; of a slice that moves in a loop those of the first trips."""
        if type(entry.start) is type(entry.stop) is int and 0 <= entry.start <= entry.stop <= extent:
            known = self._moving.setdefault(here(), set())
            if len(known) > _TRIPS and entry.stop not in known:
                return
            known.add(entry.stop)
        whole, ends = self.extent(extent), list[Any]()
        for end in (entry.start, entry.stop):
            if end is None:
                ends.append(None)
                continue
            at = whole + operator.index(end) if end < 0 else whole - whole + end
            _ = at < 0 if end < 0 else whole < at
            ends.append(at)
        if None not in ends:
            _ = ends[1] < ends[0]

    def note(self, operation: str, operands: tuple[Any, ...], outcome: Any) -> None:
        """Add a decision."""
        if not self.closed:
            found = tuple(getattr(operand, "expression", operand) for operand in operands)
            frame = sys._getframe(1)
            while frame.f_back is not None and is_own(frame):
                frame = frame.f_back
            self.taken.append(Decision(operation, found, outcome, here(), is_library(frame)))


class _Tracked:
    """A number that depends on sizes, with the expression that gives it."""

    decisions: Decisions
    expression: Expression

    def __new__(cls, decisions: Decisions, expression: Expression, value: Any) -> Any:
        made = super().__new__(cls, value)  # type: ignore[call-arg]
        made.decisions, made.expression = decisions, expression
        return made

    def __bool__(self) -> bool:
        return bool(self._noted("ne", 0, outcome=_plain(self) != 0))

    def __int__(self) -> int:
        plain = _plain(self)
        return plain if type(plain) is int else int(self._noted("trunc", outcome=int(plain)))

    def __float__(self) -> float:
        return float(_plain(self))

    def __abs__(self: Any) -> Any:
        return -self if self < 0 else self

    def __neg__(self) -> Any:
        return self._derived("neg", (self,), -_plain(self))

    def __pos__(self) -> Any:
        return _plain(self)

    def __round__(self, digits: int | None = None) -> Any:
        given = (self,) if digits is None else (self, digits)
        return self._stepped("round", given, round(_plain(self), digits))

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __reduce__(self) -> Any:
        plain = _plain(self)
        return type(plain), (plain,)

    def __array_function__(self, function: Any, types: Any, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self.decisions.note(ESCAPE, (self,), _plain(self))
        return function(*plain(given), **{name: plain(value) for name, value in options.items()})

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in _STEP_UFUNCS:
            self.decisions.note(ESCAPE, (self,), _plain(self))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def _noted(self, operation: str, *others: Any, outcome: Any) -> Any:
        self.decisions.note(operation, (self, *others), outcome)
        return outcome

    def _stepped(self, operation: str, operands: tuple[Any, ...], value: Any) -> Any:
        """The result of an operation that is a step function of sizes."""
        self.decisions.note(operation, operands, value)
        return self._derived(operation, operands, value)

    def _derived(self, operation: str, operands: tuple[Any, ...], value: Any) -> Any:
        kind = Size if type(value) is int else _Ratio if type(value) is float else None
        if kind is None:
            return value
        expression = (operation, *(getattr(operand, "expression", operand) for operand in operands))
        return kind(self.decisions, expression, value)


class Size(_Tracked, int):  # type: ignore[misc]
    """An int that depends on sizes."""


class _Ratio(_Tracked, float):  # type: ignore[misc]
    """A float that depends on sizes."""


def _plain(value: Any) -> Any:
    """The number without what it was computed from."""
    if isinstance(value, Size):
        return int.__add__(value, 0)
    return float.__add__(value, 0.0) if isinstance(value, _Ratio) else value


def _operator(name: str, *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    function = getattr(operator, name)

    def compute(self: Any, other: Any) -> Any:
        if not isinstance(other, (Size, _Ratio)) and type(other) not in (int, float, bool):
            return NotImplemented
        operands = (other, self) if swapped else (self, other)
        value = function(*map(_plain, operands))
        if name in _COMPARISONS:
            return self._noted(name, other, outcome=value)
        return (self._stepped if name in _STEPS else self._derived)(name, operands, value)

    return compute


def _escaping(name: str) -> Callable[..., Any]:
    def escape(self: Any, *given: Any, **options: Any) -> Any:
        self.decisions.note(ESCAPE, (self,), _plain(self))
        return getattr(_plain(self), name)(*given, **options)

    return escape


for _kind, _name in itertools.product((Size, _Ratio), _ESCAPES):
    if hasattr(_kind, _name):
        setattr(_kind, _name, _escaping(_name))
for _name in (*_ARITHMETIC, *_COMPARISONS):
    setattr(_Tracked, f"__{_name.strip('_')}__", _operator(_name))
for _name in _ARITHMETIC:
    setattr(_Tracked, f"__r{_name.strip('_')}__", _operator(_name, swapped=True))
for _name in ("trunc", "floor", "ceil"):
    setattr(
        _Tracked,
        f"__{_name}__",
        lambda self, name=_name: self._stepped(name, (self,), getattr(math, name)(_plain(self))),
    )


def _length(value: Any) -> int:
    number = _original(value)
    trace = current()
    if trace is None or trace.sizes is None or not is_tracer(value):
        return number
    frame = sys._getframe(1)
    return number if is_own(frame) and not is_rule(frame) else trace.sizes.extent(number)


_original = len


def plain(value: Any) -> Any:
    """A keyword of an op with ints in the place of sizes."""
    if isinstance(value, (Size, _Ratio)):
        return _plain(value)
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, tuple):
        parts = tuple(map(plain, value))
        return value if all(map(operator.is_, parts, value)) else parts
    if isinstance(value, Record):
        contents = value.contents()
        parts = plain(contents)
        return value if parts is contents else type(value)(*parts)
    return value


def length() -> Patch:
    """Where `len` stands, with a form that gives a `Size` for a traced array."""
    return Patch(vars(builtins), "len", _original, _length)
