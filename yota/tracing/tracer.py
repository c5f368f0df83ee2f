"""The stand-in for an array or a number while a function is traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from yota.ir.catalog import primitive
from yota.tracing import conversions, views
from yota.tracing import traced_text as text
from yota.tracing.array_protocols import answered, deferred, overriding, refuse_computing
from yota.tracing.current import innermost
from yota.tracing.dispatch import call_function, call_ufunc
from yota.tracing.implementations import BY_KIND, IMPLEMENTATIONS
from yota.tracing.indices import are_whole, is_written
from yota.tracing.methods import ArrayMethods, is_tracer
from yota.tracing.repeated_calls import repeated
from yota.tracing.strided import as_dtype
from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


def _binary(name: str, python: Callable[[Any, Any], Any]) -> tuple[Any, Any, Any]:
    """The operator, its reflected form and its in-place form."""
    known = primitive(name)

    def forward(self: Tracer, other: Any) -> Any:
        trace = innermost.stack[-1]
        if trace is not self._trace or type(other) not in _OPERANDS:
            found = _deferred(self, name, other, (self, other))
            if found is not None:
                return found
            trace = self._recorder()
        return trace.operate(known, python, self, other)

    def reflected(self: Tracer, other: Any) -> Any:
        trace = innermost.stack[-1]
        if trace is not self._trace or type(other) not in _OPERANDS:
            found = _deferred(self, name, other, (other, self))
            if found is not None:
                return found
            trace = self._recorder()
        return trace.operate(known, python, other, self)

    return forward, reflected, _in_place(forward)


def _in_place(forward: Callable[[Tracer, Any], Any]) -> Callable[[Tracer, Any], Any]:
    def in_place(self: Tracer, other: Any) -> Any:
        result = forward(self, other)
        if result is NotImplemented or not isinstance(self._value(), np.ndarray):
            return result
        views.overwrite(self, result)
        return self

    return in_place


def _deferred(tracer: Tracer, name: str, other: Any, operands: tuple[Any, Any]) -> Any:
    """What an operator gives if the ``other`` operand decides it; None if that does not."""
    if type(other) in _OPERANDS:
        return None
    trace = tracer._recorder()
    if isinstance(other, str) or other is None:
        return NotImplemented
    found = None if is_tracer(other) else deferred(getattr(np, name), tracer._value(), other, operands)
    if found is None and not tracer.ndim and trace.is_foreign(other):
        return NotImplemented  # a class of the user's has the operator's other form
    return found


def _power(tracer: Tracer, other: Any, base: Any, exponent: Any) -> Any:
    if base is tracer and type(other) in _OPERANDS and type(tracer._value()) is np.float64:
        return tracer._recorder().operate(_POWER, operator.pow, base, exponent, 4)
    found = None if type(other) in _OPERANDS else _deferred(tracer, "power", other, (base, exponent))
    if found is not None:
        return found
    trace, value = tracer._recorder(), base._value() if is_tracer(base) else base
    if isinstance(value, np.ndarray) and base is tracer and isinstance(exponent, (int, float, np.number)):
        is_wider = isinstance(exponent, np.generic) and np.result_type(value, exponent) != value.dtype
        special = None if is_tracer(exponent) or is_wider else _POWERS.get(float(exponent))
        if special:
            known = primitive(special)
            if value.dtype.kind == "f" and type(exponent) in (int, float):
                return trace.apply(known, (base,))
            return trace.apply(known, (base,), python=lambda value: value**exponent)
    if type(value) in (int, float) and value < 0:
        # A whole power of a real number of Python's is real, any other one complex.
        power = exponent._value() if is_tracer(exponent) else exponent
        if type(power) is float and math.isfinite(power) and not power.is_integer():
            base = base.astype(complex) if is_tracer(base) else complex(base)
    return trace.operate(_POWER, operator.pow, base, exponent, 4)


_OPERANDS = {np.ndarray, float, int, complex, bool, list, tuple, np.float64}
"""Classes of operands that NumPy computes with as they are, and `Tracer`."""

_POWER = primitive("power")
# NumPy's ``**`` takes these shortcuts itself on arrays, so they keep the value's bits.
_POWERS = {0.5: "sqrt", 2.0: "square"}


def _unary(name: str, python: Callable[[Any], Any]) -> Any:
    known = primitive(name)

    def apply(self: Tracer) -> Any:
        return self._recorder().apply(known, (self,), python=python, depth=3)

    return apply


_CLASS = type
_ENDED = np.empty(0)


def _operands(args: Any, kwargs: Any) -> Iterator[Any]:
    for value in (*args, *kwargs.values()):
        yield from value if isinstance(value, (list, tuple)) else (value,)


class Tracer(ArrayMethods):
    """A traced array, NumPy scalar or Python number. It claims the class of that; a view knows what it views."""

    __slots__ = ("_base", "_base_shape", "_base_variable", "_read", "_trace", "_variable")

    def __init__(self, trace: Trace, variable: int, base: Tracer | None = None, read: Any = None) -> None:
        self._trace = trace
        self._variable = variable
        self._base = base
        self._read = read
        if base is not None:
            self._base_variable, self._base_shape = base._current(), base.shape

    def _current(self) -> int:
        """The variable that holds this value now, after all writes so far."""
        base = self._base
        if base is not None:
            variable = base._current()
            if variable != self._base_variable or self._variable == views.UNREAD:
                self._variable = views.look(views.shaped_as(base, self._base_shape), self._read)._variable
                self._base_variable = variable
        elif self._trace.written is self:
            self._trace.written = None
        return self._variable

    def _plain(self) -> Tracer:
        """The same array without a subclass."""
        return self

    def _recorder(self) -> Trace:
        """The trace that records what happens now: the innermost one, which may be nested in this value's own."""
        inner = innermost.stack[-1]
        if inner is not self._trace:
            self._trace.check(self._variable)
        return inner or self._trace

    def _value(self) -> Any:
        """The concrete value."""
        return self._trace.values[self._current()]

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._trace.values.get(self._current(), _ENDED))

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents; setting them reshapes in place."""
        shape = self._trace.builder.types[self._current()].shape
        return shape if self._trace.sizes is None else self._trace.sizes.shape(shape)

    @shape.setter
    def shape(self, extents: Any) -> None:
        if self._base is not None:
            if extents == self.shape:
                return
            raise self._trace.refuse("setting the shape of a view is not supported.", "Use .reshape(...).")
        found = np.reshape(self, extents)
        if self.size and not np.may_share_memory(found._value(), self._value()):
            raise AttributeError("Incompatible shape for in-place modification: the elements do not lie in this order.")
        self._variable = found._current()

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """See `numpy.ndarray.resize`: other extents in place, with zeros where elements are missing."""
        views.resize(self, new_shape[0] if len(new_shape) == 1 else new_shape, refcheck)

    @property
    def flat(self) -> Any:
        """Elements in C order, to be read and written."""
        return views.flat(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        """NumPy repeats what is too short, and leaves out what is too much."""
        if values is not self:
            views.refuse_own(views.flat(self), values)
        self[...] = np.reshape(np.resize(values, self.size), self.shape)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """See `numpy.ndarray.view`: all of the array, as it is, or complex numbers as pairs of real ones."""
        wanted = dtype if isinstance(dtype, _CLASS) and issubclass(dtype, np.ndarray) else type
        if wanted not in (None, np.ndarray):
            found = self if dtype in (None, wanted) else self.view(dtype)
            return IMPLEMENTATIONS[np.ndarray.view](self._recorder(), found, wanted, self)
        kind = self.dtype if dtype in (None, np.ndarray) else np.dtype(dtype)
        return self[...] if kind == self.dtype else as_dtype(self, kind)

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in memory; what is recorded depends on how the arguments lie there."""
        self._recorder().rely_on_order()
        found: tuple[int, ...] = self._value().strides
        return found

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """See `numpy.ndarray.setflags`; who writes where that is not allowed is told so without tracing."""

    def tobytes(self, order: str = "C") -> bytes:
        """Its bytes, as a guard: they may be a key of what was computed before."""
        return text.to_bytes(self, order)

    __array_priority__ = 1000.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        trace = innermost.stack[-1]
        if trace is self._trace and method == "__call__" and not kwargs:
            known = trace.direct.get(ufunc)
            if known is not None and _OPERANDS.issuperset(map(type, inputs)):
                return trace.apply(known, inputs, depth=3)
            if ufunc in BY_KIND and type(self) is Tracer:
                return repeated(trace, ufunc, inputs, {}, lambda: self._ufunc(ufunc, method, inputs, {}))
        return self._ufunc(ufunc, method, inputs, kwargs)

    def _ufunc(self, ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.get("out", ())
        other = overriding("__array_ufunc__", (*inputs, *(out if isinstance(out, tuple) else (out,))))
        if other is not None:
            return answered(other, "__array_ufunc__", ufunc, method, *inputs, **kwargs)
        return call_ufunc(self._recorder(), ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        trace = self._trace
        if func in BY_KIND and innermost.stack[-1] is trace and type(self) is Tracer:
            return repeated(trace, func, args, kwargs, lambda: self._function(func, types, args, kwargs))
        return self._function(func, types, args, kwargs)

    def _function(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        other = overriding("__array_function__", _operands(args, kwargs)) if len(types) > 1 else None
        if other is not None:
            return answered(other, "__array_function__", func, types, args, kwargs)
        if len(types) > 1:
            refuse_computing(_operands(args, kwargs))
        return call_function(self._recorder(), func, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return conversions.to_array(self, dtype)

    __add__, __radd__, __iadd__ = _binary("add", operator.add)
    __sub__, __rsub__, __isub__ = _binary("subtract", operator.sub)
    __mul__, __rmul__, __imul__ = _binary("multiply", operator.mul)
    __truediv__, __rtruediv__, __itruediv__ = _binary("divide", operator.truediv)
    __floordiv__, __rfloordiv__, __ifloordiv__ = _binary("floor_divide", operator.floordiv)
    __mod__, __rmod__, __imod__ = _binary("remainder", operator.mod)
    __and__, __rand__, __iand__ = _binary("bitwise_and", operator.and_)
    __or__, __ror__, __ior__ = _binary("bitwise_or", operator.or_)
    __xor__, __rxor__, __ixor__ = _binary("bitwise_xor", operator.xor)
    __lshift__, __rlshift__, __ilshift__ = _binary("left_shift", operator.lshift)
    __rshift__, __rrshift__, __irshift__ = _binary("right_shift", operator.rshift)
    __lt__, _, _ = _binary("less", operator.lt)
    __le__, _, _ = _binary("less_equal", operator.le)
    __gt__, _, _ = _binary("greater", operator.gt)
    __ge__, _, _ = _binary("greater_equal", operator.ge)
    _equal, _, _ = _binary("equal", operator.eq)
    _not_equal, _, _ = _binary("not_equal", operator.ne)
    __neg__ = _unary("negative", operator.neg)
    __abs__ = _unary("absolute", operator.abs)
    __invert__ = _unary("invert", operator.invert)

    def __pos__(self) -> Any:
        return self._recorder().apply(primitive("positive"), (self,), python=operator.pos)

    def __pow__(self, other: Any) -> Any:
        return _power(self, other, self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(self, other, other, self)

    __ipow__ = _in_place(__pow__)

    def __eq__(self, other: object) -> Any:
        return False if other is None or isinstance(other, str) else self._equal(other)

    def __ne__(self, other: object) -> Any:
        return True if other is None or isinstance(other, str) else self._not_equal(other)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    def __matmul__(self, other: Any) -> Any:
        found = _deferred(self, "matmul", other, (self, other))
        return np.matmul(self, other) if found is None else found

    def __rmatmul__(self, other: Any) -> Any:
        found = _deferred(self, "matmul", other, (other, self))
        return np.matmul(other, self) if found is None else found

    def __imatmul__(self, other: Any) -> Any:
        views.overwrite(self, np.matmul(self, other))
        return self

    def __getitem__(self, index: Any) -> Any:
        trace = self._trace
        if (
            (type(index) is slice or (type(index) is tuple and not are_whole(index)))
            and innermost.stack[-1] is trace
            and type(self) is Tracer
            and type(self._read) is not views.Look
        ):
            return repeated(trace, operator.getitem, (self, index), {}, lambda: views.read(self, index))
        return views.read(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self._trace.written is not self or not is_written(self, index, value):
            views.write(self, index, value)

    def __len__(self) -> int:
        return len(self._value())

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[position] for position in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool(np.any(self == item))

    def __bool__(self) -> bool:
        variable = self._current()
        decision = bool(self._trace.values[variable])
        self._trace.decide(variable, "bool", decision)
        return decision

    def __int__(self) -> int:
        return conversions.to_int(self, int)

    __trunc__ = __int__

    def __index__(self) -> int:
        return conversions.to_int(self, operator.index)

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __round__(self, digits: int | None = None) -> Any:
        return int(np.rint(self)) if digits is None else np.round(self, digits)

    def __float__(self) -> float:
        return float(conversions.to_number(self, float))

    def __complex__(self) -> complex:
        return complex(conversions.to_number(self, complex))

    def is_integer(self) -> bool:
        """See `float.is_integer`; a guard."""
        if self.ndim or isinstance(self._value(), np.ndarray):
            raise AttributeError("'ndarray' object has no attribute 'is_integer'")
        return bool(np.equal(self, np.floor(self)))

    def __hash__(self) -> int:
        return conversions.to_hash(self)

    def __repr__(self) -> str:
        if self._trace.finished:
            kind = self._trace.builder.types[self._variable]
            return f"traced({kind}, and {self._trace.builder.name} has returned)"
        return text.to_text(self, repr)

    def __str__(self) -> str:
        return text.to_text(self, str)

    def __format__(self, specification: str) -> str:
        return text.to_text(self, lambda value: format(value, specification))

    def __copy__(self, memo: Any = None) -> Any:
        return self.copy("K")

    __deepcopy__ = __copy__

    def __reduce__(self) -> Any:
        raise self._trace.refuse("a traced value cannot be pickled or sent to another process.", "Do that outside.")


_OPERANDS.add(Tracer)
BY_KIND[operator.getitem] = 1
