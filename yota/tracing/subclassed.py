"""Traced values as objects of subclasses of NumPy's arrays, whose own code runs on them."""

from __future__ import annotations

import abc
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from yota.structures import package_of
from yota.tracing.array_protocols import answered, deferred, overriding, source_form
from yota.tracing.current import current, paused
from yota.tracing.dispatch import call_function, call_ufunc
from yota.tracing.implementations import implements
from yota.tracing.methods import is_tracer, transformed
from yota.tracing.trace import Trace
from yota.tracing.tracer import Tracer
from yota.tracing.untyped import np

_PROTOCOLS = ("__array_ufunc__", "__array_function__", "__array_finalize__", "__array_wrap__")
_LEFT_OUT = ("__dict__", "__weakref__", "__new__", "__init_subclass__", "__slots__", "__class__")
_BINARY = dict(
    zip(
        "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split(),
        (
            "add subtract multiply matmul divide floor_divide remainder power bitwise_and bitwise_or bitwise_xor "
            "left_shift right_shift"
        ).split(),
        strict=True,
    )
)
_COMPARISONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal"}
_COMPARISONS["ne"] = "not_equal"
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
_REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}
_OF_THE_CLASS = (
    "argpartition argsort astype clip compress conj conjugate copy cumprod cumsum diagonal dot flatten mean ravel "
    "repeat reshape round squeeze std swapaxes take transpose var all any sort partition fill put"
).split()
"""Methods of arrays that give a subclass its own class back, or write in place."""


_CLASS = type


class Subclassed(Tracer):
    """Base of the classes that stand for subclasses of NumPy's arrays: it computes as `numpy.ndarray` does."""

    stands_for: type = np.ndarray
    __array_priority__ = 0.0

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self).stands_for

    def _plain(self) -> Tracer:
        return Tracer(self._trace, self._current(), self._base, self._read)

    def _like(self, found: Any) -> Any:
        return as_kind(self._trace, found, type(self).stands_for, self) if is_tracer(found) else found

    def __array_finalize__(self, parent: Any) -> None:
        """Subclasses take over attributes here."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """``array`` as an object of this class."""
        return self._like(array)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method in ("outer", "at") and isinstance(self, np.ma.MaskedArray):
            raise self._trace.refuse(
                f"numpy.{ufunc.__name__}.{method} of a masked array is not recorded.",
                f"Use numpy.ma.{ufunc.__name__}, or the arrays .data and .mask.",
            )
        out = kwargs.get("out", ())
        everything = (*inputs, *(out if isinstance(out, tuple) else (out,)))
        if any(
            _is_subclassed(each) and type(each).__array_ufunc__ is not Subclassed.__array_ufunc__ for each in everything
        ):
            return NotImplemented
        other = overriding("__array_ufunc__", everything)
        if other is not None:
            return answered(other, "__array_ufunc__", ufunc, method, *inputs, **kwargs)
        found = call_ufunc(self._recorder(), ufunc, method, plain(inputs), plain(kwargs))
        if out:
            return out[0] if isinstance(out, tuple) and len(out) == 1 else out
        own = [each for each in inputs if _is_subclassed(each)]
        if not own:
            return found
        first = max(own, key=lambda each: each.__array_priority__)
        context = (ufunc, inputs) if method == "__call__" else None
        if isinstance(found, tuple):
            return tuple(first._wrapped(each, context, number) for number, each in enumerate(found))
        return first._wrapped(found, context)

    def _wrapped(self, found: Any, context: Any, number: int = 0) -> Any:
        """A result as the class wraps it; ``context`` has the ufunc and its inputs, if it was called."""
        wrap = type(self).__array_wrap__
        if wrap is Subclassed.__array_wrap__ or not is_tracer(found):
            return self._like(found)
        parameters = len(inspect.signature(wrap).parameters)
        given = (context and (*context, number), False)
        return source_form(wrap)(self, found, *given[: max(parameters - 2, 0)])

    @property
    def __array_interface__(self) -> Any:
        # Code in Python looks whether two arrays are at one place; NumPy's compiled code takes nothing but a dict.
        return types.MappingProxyType(np.asarray(self._value()).__array_interface__)

    def __array_function__(self, func: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self, np.ma.MaskedArray):
            return _on_masked(self._recorder(), func, args, kwargs)
        found = call_function(self._recorder(), func, plain(args), plain(kwargs))
        keeps = self._kept(func, args, kwargs)
        if isinstance(found, (tuple, list)) and isinstance(keeps, (tuple, list)):
            return type(found)(self._like(each) if kept else each for each, kept in zip(found, keeps, strict=True))
        return self._like(found) if keeps is True else found

    def _kept(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Whether NumPy's function gives a subclass back, for each result."""

        def probe(value: Any) -> Any:
            if not is_tracer(value):
                return value
            return np.array(value._value()).view(_Probe) if _is_subclassed(value) else np.array(value._value())

        with paused(), np.errstate(all="ignore"):
            found = func(*transformed(tuple(args), probe), **transformed(dict(kwargs), probe))
        return transformed(found, lambda each: type(each) is _Probe)

    def __getitem__(self, index: Any) -> Any:
        found = self._plain()[plain(index)]
        return self._like(found) if isinstance(found._value(), np.ndarray) else found

    def __iter__(self) -> Any:
        item = source_form(type(self).__getitem__)
        return (item(self, position) for position in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._plain()[plain(index)] = plain(value)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """See `numpy.ndarray.view`."""
        is_class = isinstance(dtype, _CLASS) and issubclass(dtype, np.ndarray)
        kind = type if type is not None else dtype if is_class else None
        found = self._plain().view(None if kind is dtype else dtype)
        return found if kind is np.ndarray else as_kind(self._trace, found, kind or self.__class__, self)


_BESIDE_MASKS = (np.copyto, np.result_type, np.can_cast, np.min_scalar_type, np.may_share_memory, np.shares_memory)
"""Compiled functions that take masked arrays as arrays."""


def _on_masked(trace: Trace, function: Any, args: Any, kwargs: Any) -> Any:
    """What NumPy's function gives for masked arrays, on which it calls methods."""
    if function in _BESIDE_MASKS:
        return call_function(trace, function, plain(args), plain(kwargs))
    inner = source_form(getattr(function, "_implementation", None))
    if inner is None or inner is function._implementation:
        raise trace.refuse(
            f"numpy.{function.__name__} of a masked array is not recorded.",
            f"Use numpy.ma.{function.__name__}, or the arrays .data and .mask.",
        )
    return inner(*args, **kwargs)


class _Probe(np.ndarray):  # type: ignore[misc]
    pass


def _is_subclassed(value: Any) -> bool:
    return issubclass(type(value), Subclassed)


def plain(value: Any) -> Any:
    """Arguments with a traced array in the place of each one of a subclass."""
    return transformed(value, lambda each: each._plain() if _is_subclassed(each) else each)


def _method(name: str) -> Callable[..., Any]:
    def call(self: Subclassed, *args: Any, **keywords: Any) -> Any:
        return self._like(getattr(self._plain(), name)(*plain(args), **plain(keywords)))

    return call


def _reduction(name: str, ufunc: Any) -> Callable[..., Any]:
    def call(self: Subclassed, axis: Any = None, dtype: Any = None, out: Any = None, **keywords: Any) -> Any:
        given = {name: value for name, value in {"dtype": dtype, "out": out}.items() if value is not None}
        return ufunc.reduce(self, axis=axis, **given, **keywords)

    call.__name__ = name
    return call


def _property(name: str) -> property:
    return property(lambda self: self._like(getattr(self._plain(), name)))


def _binary(ufunc: Any, reflected: bool) -> Callable[..., Any]:
    def call(self: Subclassed, other: Any) -> Any:
        if other is None or isinstance(other, str):
            return NotImplemented
        operands = (other, self) if reflected else (self, other)
        found = None if is_tracer(other) else deferred(ufunc, self._value(), other, operands)
        return ufunc(*operands) if found is None else found

    return call


for _name in _OF_THE_CLASS:
    setattr(Subclassed, _name, _method(_name))
for _name, _ufunc in _REDUCTIONS.items():
    setattr(Subclassed, _name, _reduction(_name, getattr(np, _ufunc)))
for _name in ("T", "mT", "real", "imag"):
    setattr(Subclassed, _name, _property(_name))
for _name, _ufunc in _BINARY.items():
    _found = getattr(np, _ufunc)
    setattr(Subclassed, f"__{_name}__", _binary(_found, False))
    setattr(Subclassed, f"__r{_name}__", _binary(_found, True))
    setattr(Subclassed, f"__i{_name}__", lambda self, other, ufunc=_found: ufunc(self, other, out=(self,)))
for _name, _ufunc in _COMPARISONS.items():
    setattr(Subclassed, f"__{_name}__", _binary(getattr(np, _ufunc), False))
for _name, _ufunc in _UNARY.items():
    setattr(Subclassed, f"__{_name}__", lambda self, name=_ufunc: getattr(np, name)(self))
Subclassed.flat = property(lambda self: self._plain().flat)  # type: ignore[assignment]
Subclassed.__hash__ = Tracer.__hash__  # type: ignore[method-assign]


_known: WeakKeyDictionary[type, type] = WeakKeyDictionary()


class SubclassedFloat(Tracer):
    """Base of the classes that stand for subclasses of float: it computes as float does, and gives floats."""

    stands_for: type = float

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self).stands_for

    def _plain(self) -> Tracer:
        return Tracer(self._trace, self._current())

    def _like(self, found: Any) -> Any:
        return found


def as_float(kind: type, number: Any) -> Any:
    """A traced number as an object of ``kind``, a subclass of float."""
    new: Any = object.__new__(class_for(kind))
    Tracer.__init__(new, number._trace, number._current())
    return new


def class_for(kind: type) -> type:
    """The class of traced values that stands for a subclass of NumPy's arrays or of float: it has its methods."""
    if kind in (np.ndarray, float):
        return Subclassed if kind is np.ndarray else SubclassedFloat
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = _made(kind)
    return found


def _made(kind: type) -> type:
    bases = tuple(class_for(base) if issubclass(base, (np.ndarray, float)) else base for base in kind.__bases__)
    cell = types.CellType()
    names = {
        name: _moved(value, cell)
        for name, value in vars(kind).items()
        if name not in _LEFT_OUT and not isinstance(value, types.MemberDescriptorType)
    }
    names["stands_for"] = kind
    if package_of(kind) == "numpy" and kind is not np.ma.MaskedArray:
        raise TypeError("it is NumPy's own")
    if type(kind) not in (type, abc.ABCMeta):
        raise TypeError(f"metaclass {type(kind).__name__}")
    made: type = type(kind)(kind.__name__, bases, names)
    cell.cell_contents = made
    return made


def _moved(value: Any, cell: types.CellType) -> Any:
    """A method whose ``super()`` looks from the class in ``cell``."""
    if isinstance(value, (staticmethod, classmethod)):
        return type(value)(_moved(value.__func__, cell))
    if type(value) is property:
        return property(*(_moved(each, cell) for each in (value.fget, value.fset, value.fdel)))
    if type(value) is not types.FunctionType:
        return value
    if "__class__" not in value.__code__.co_freevars:
        return _reading(value) if value.__name__ in _PROTOCOLS else value
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    closure = tuple(cell if name == "__class__" else each for name, each in cells)
    found = types.FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, closure)
    found.__kwdefaults__, found.__dict__ = value.__kwdefaults__, {**vars(value)}
    return _reading(found) if value.__name__ in _PROTOCOLS else found


def _reading(function: types.FunctionType) -> Any:
    """``function``, which NumPy calls; from its source where the traced function runs from its own."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        form = source_form(function) if trace is not None and trace.reads else function
        return form(*args, **keywords)

    return call


@implements(np.ndarray.view)
def as_kind(trace: Trace, tracer: Any, kind: type, parent: Any) -> Any:
    """A view of a traced array as an object of ``kind``, a subclass of NumPy's arrays; ``parent`` gives attributes."""
    if issubclass(kind, np.ma.MaskedArray) and not trace.deep:
        raise TypeError("masked arrays are followed where the function runs from its source")
    try:
        made = class_for(kind)
    except TypeError as fault:
        raise trace.refuse(
            f"a view of a traced value as {kind.__module__}.{kind.__name__} cannot be recorded ({fault}).",
            "Use a plain array: np.asarray(...).",
        ) from None
    seen = tracer._plain() if isinstance(tracer._value(), np.ndarray) else np.asarray(tracer)
    seen = seen[...]
    new: Any = object.__new__(made)
    Tracer.__init__(new, trace, seen._variable, seen._base, seen._read)
    finalize = getattr(made, "__array_finalize__", None)
    if finalize is not None and finalize is not Subclassed.__array_finalize__:
        source_form(finalize)(new, parent)
    return new
