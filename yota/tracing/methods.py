"""The attributes and methods of ndarray, on traced values."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yota.errors import TracingError
from yota.ir.catalog import primitive
from yota.tracing.captures import is_frozen
from yota.tracing.current import paused
from yota.tracing.memory import laid_out
from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


_REAL_FORMS = ("yota.tracing.numpy.", "yota.tracing.scipy.", "yota.solvers.")
"""Modules that compute functions by others; there, a cast of a complex value to a real one would lose a part."""


class ArrayMethods:
    """What an ndarray has and can do by name; most calls go through NumPy's function of that name."""

    __slots__ = ()

    if TYPE_CHECKING:
        _trace: Trace
        shape: Any

        def _current(self) -> int: ...
        def _value(self) -> Any: ...
        def _recorder(self) -> Trace: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self._trace.builder.types[self._current()].dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        if self._trace.sizes is not None:
            return math.prod(self._trace.sizes.shape(self._trace.builder.types[self._current()].shape))
        return self._trace.builder.types[self._current()].size

    @property
    def flags(self) -> Any:
        """Memory layout of the concrete value."""
        self._trace.rely_on_order()
        value = np.asarray(self._value())
        if self._trace.is_constant(self._current()) and is_frozen(value):
            value = value.base
        return value.flags

    @property
    def base(self) -> None:
        """None, of an array that owns its memory."""
        if getattr(self._value(), "base", None) is not None:
            raise self._trace.refuse("the base of a traced view cannot be recorded.", "Do without it.")

    @property
    def real(self) -> Any:
        """Real part."""
        return np.real(self) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """Imaginary part."""
        return np.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self.imag[...] = value

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return np

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """See `numpy.ndarray.to_device`."""
        if device != "cpu":
            raise ValueError(f"Unsupported device: {device}.")
        return self

    def reshape(self, *shape: Any, **keywords: Any) -> Any:
        """See `numpy.ndarray.reshape`."""
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **keywords)

    def transpose(self, *axes: Any) -> Any:
        """See `numpy.ndarray.transpose`."""
        single = len(axes) == 1 and not isinstance(axes[0], (int, np.integer))
        return np.transpose(self, axes[0] if single else axes or None)

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:
        """See `numpy.ndarray.clip`."""
        return np.clip(self, min, max, out, **keywords)

    def conj(self) -> Any:
        """See `numpy.ndarray.conj`: real numbers are their own conjugates."""
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def partition(self, kth: Any, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """See `numpy.ndarray.partition`: partitions in place."""
        self[...] = np.partition(self, kth, axis)

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None, **keywords: Any) -> None:
        """See `numpy.ndarray.sort`: sorts in place."""
        self[...] = np.sort(self, axis, kind, order, **keywords)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Any:
        """See `numpy.ndarray.astype`; to an integer dtype the derivative is zero."""
        kind = np.dtype(dtype)
        if kind.kind not in "biufc":
            raise self._trace.refuse(f"a traced value cannot be cast to {kind}.", "Use a floating dtype.")
        if kind == self.dtype:
            return self.copy(order) if copy else laid_out(self, order)
        if self.dtype.kind == "c" != kind.kind and sys._getframe(1).f_globals["__name__"].startswith(_REAL_FORMS):
            raise self._trace.refuse(
                "a complex value is given to a function that is recorded for real ones only.",
                "Take .real, .imag or abs() first.",
            )
        return laid_out(cast(self._recorder(), self, kind), order)

    def copy(self, order: str = "C") -> Any:
        """See `numpy.ndarray.copy`."""
        self._recorder()
        value = self._value()
        if self._trace.exact and self.ndim:
            return np.copy(self, order=order)
        if not isinstance(value, np.ndarray):
            return self._trace.wrap(self._current(), value)
        copied = value.copy(order)
        if copied.strides != value.strides:
            # Whether a reshape is a view depends on the order in memory, so the copy has a variable of its own.
            return self._trace.rearranged(self._current(), copied)
        return self._trace.wrap(self._current(), copied)

    def item(self, *index: Any) -> Any:
        """A Python number that is still traced; its derivative is kept."""
        if not index:
            if self.size != 1:
                raise ValueError("can only convert an array of size 1 to a Python scalar")
            chosen = self[(0,) * self.ndim] if self.ndim else self
        elif len(index) == 1 and isinstance(index[0], (int, np.integer)):
            chosen = self.reshape(-1)[index[0]]
        else:
            chosen = self[index[0] if len(index) == 1 else index]
        return self._recorder().apply(primitive("positive"), (chosen,), python=lambda value: np.asarray(value).item())

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    def tolist(self) -> Any:
        """Nested lists of Python numbers that are still traced."""
        if not self.ndim:
            return self.item()
        return [self[position].tolist() for position in range(self.shape[0])]


def _method(name: str) -> Any:
    """The method that is NumPy's function of its name, with the same parameters in the same order."""

    def call(self: ArrayMethods, *args: Any, **keywords: Any) -> Any:
        return getattr(np, name)(self, *args, **keywords)

    call.__name__, call.__doc__ = name, f"See `numpy.ndarray.{name}`."
    return call


# An object array of traced numbers that meets a ufunc asks each of them for a method of its name.
_UFUNCS = [name for name, value in vars(np).items() if isinstance(value, np.ufunc) and not hasattr(ArrayMethods, name)]
for _name in (
    "all any argmax argmin argpartition argsort choose cumprod cumsum diagonal dot max mean min nonzero prod ravel "
    "put repeat round searchsorted squeeze std sum swapaxes take trace var"
).split() + _UFUNCS:
    setattr(ArrayMethods, _name, _method(_name))
_FORMS: dict[str, Any] = {
    "T": property(np.transpose),
    "mT": property(lambda self: np.swapaxes(self, -1, -2)),
    "itemsize": property(lambda self: int(self.dtype.itemsize)),
    "nbytes": property(lambda self: self.size * self.itemsize),
    "device": property(lambda self: "cpu"),
    "flatten": lambda self, order="C": np.ravel(self, order=order).copy(),
    "compress": lambda self, condition, axis=None, out=None: np.compress(condition, self, axis, out),
    "fill": lambda self, value: self.__setitem__(Ellipsis, value),
}
for _name, _form in _FORMS.items():
    setattr(ArrayMethods, _name, _form)


def _refused(name: str) -> Any:
    def refuse(self: ArrayMethods) -> Any:
        raise self._trace.refuse(f"the attribute .{name} of a traced value cannot be recorded.", "Do without it.")

    return property(refuse)


for _name in "byteswap ctypes data dump dumps getfield setfield tofile".split():
    setattr(ArrayMethods, _name, _refused(_name))


def cast(trace: Trace, value: Any, dtype: Any) -> Any:
    """``value`` on the tape in another dtype."""
    if dtype.kind == "b" and trace.builder.types[trace.lift(value)].is_complex:
        # Either part makes it true.
        return trace.apply(primitive("not_equal"), (value, 0), {})
    return trace.apply(primitive("astype"), (value,), {"dtype": dtype})


def unboxed(value: Any) -> Any:
    """``value``, as a number where it is an array without axes: what NumPy's functions mostly return for one."""
    return value if np.ndim(value) or not isinstance(value, np.ndarray) else value[()]


def is_tracer(value: Any) -> bool:
    """Whether a value is a tracer; `isinstance` asks for the class that it claims."""
    return issubclass(type(value), ArrayMethods)


def as_traced(value: Any) -> Any:
    """The tracer that the `__array__` of an object gives; otherwise ``value``."""
    if is_tracer(value) or isinstance(value, (np.ndarray, np.generic)) or not hasattr(type(value), "__array__"):
        return value
    found = value.__array__()
    return found if is_tracer(found) else value


def of_object(trace: Trace, value: Any, plain: Callable[[Any], Any]) -> Any:
    """What ``plain`` makes of an object with an `__array__`, or the tracer that this gives."""
    try:
        with paused():  # what it calls must not record: NumPy takes plain arrays from it
            return plain(value)
    except (TracingError, ValueError):
        found = as_traced(value)
        if not is_tracer(found):
            raise
    trace.refused = None
    return found


def is_traced(value: Any) -> bool:
    """Whether a value, or anything in a list or tuple, is a tracer."""
    if is_tracer(value):
        return True
    if type(value) in (list, tuple):
        return any(is_traced(item) for item in value)
    return isinstance(value, np.ndarray) and value.dtype == object and any(is_traced(item) for item in value.flat)


def transformed(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` after ``change``, which is applied to each item of lists, tuples and dicts, nested."""
    if type(value) in (list, tuple):
        return type(value)(transformed(item, change) for item in value)
    if type(value) is dict:
        return {key: transformed(item, change) for key, item in value.items()}
    return change(value)


def collected(value: Any) -> Any:
    """The items of a generator or another iterable as a list; a sequence or an array as it is."""
    known = (list, tuple, str, bytes, dict, np.ndarray)
    return value if is_tracer(value) or isinstance(value, known) or not hasattr(value, "__iter__") else list(value)


def with_part(base: Any, name: str, written: Any) -> Any:
    """``base`` after ``written`` took the place of the part that ``name`` says."""
    real, imaginary = (written, np.imag(base)) if name == "real" else (np.real(base), written)
    return real + turned(imaginary, base.dtype)


def turned(part: Any, dtype: Any) -> Any:
    """``part`` as the imaginary part of numbers without a real one: ``1j * inf`` would have NaN for that."""
    result = 1j * np.where(np.isfinite(part), part, 0)
    for special in (math.inf, -math.inf):
        result = np.where(np.equal(part, special), np.asarray(complex(0, special), dtype), result)
    return np.where(np.isnan(part), np.asarray(complex(0, math.nan), dtype), result)
