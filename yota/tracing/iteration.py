"""NumPy's iterators over traced arrays, in the order in which elements lie in memory, and lists of traced values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from yota.tracing.creation import array, fresh
from yota.tracing.implementations import records
from yota.tracing.intercept import on_traced
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_INDICES = ("multi_index", "c_index", "f_index")
_POSITIONS = "finished multi_index index iterindex itersize nop ndim shape iternext reset close".split()
"""Attributes of `numpy.nditer` that are the same whatever the elements are."""
_KNOWN = (*_INDICES, "zerosize_ok", "refs_ok", "copy_if_overlap", "common_dtype")
_plain_iterator, _plain_broadcast = np.nditer, np.broadcast


@records("numpy", "nditer")
class _Elements:
    """What ``np.nditer`` gives, where an operand is traced: each element as an array without axes."""

    __slots__ = ("_walk", "operands")

    def __init__(
        self,
        trace: Trace,
        op: Any,
        flags: Any = (),
        op_flags: Any = None,
        op_dtypes: Any = None,
        *,
        order: str = "K",
        **keywords: Any,
    ) -> None:
        given = list(op) if isinstance(op, (list, tuple)) else [op]
        flags = list(flags or ())
        if keywords or any(each not in _KNOWN for each in flags):
            found = ", ".join([*(each for each in flags if each not in _KNOWN), *keywords])
            raise trace.unrecorded(f"np.nditer with {found}", "Leave it out, or use np.ndenumerate.")
        modes = op_flags or [["readonly"]] * len(given)
        kinds = op_dtypes if isinstance(op_dtypes, (list, tuple)) else [op_dtypes] * len(given)
        modes = [modes] * len(given) if isinstance(modes[0], str) else modes
        plain = [each is not None and not is_tracer(each) for each in given]
        writing = {"readwrite", "writeonly"}
        if any(
            one and not writing.isdisjoint([mode] if isinstance(mode, str) else mode)
            for one, mode in zip(plain, modes, strict=True)
        ):
            raise trace.refuse("np.nditer would write into a plain array.", "Make it inside of the function.")
        trace.rely_on_order()
        arrays = [np.asarray(each, kind) for each, kind in zip(given, kinds, strict=True) if each is not None]
        shape, common = np.broadcast_shapes(*map(np.shape, arrays)), np.result_type(*(each.dtype for each in arrays))
        read = iter(arrays)
        self.operands = tuple(
            fresh(trace, np.zeros(shape, kind or common)) if each is None else trace.traced(next(read))
            for each, kind in zip(given, kinds, strict=True)
        )
        # It tells the places; what lies there is read from the operands.
        known = {"multi_index", "zerosize_ok", *(each for each in flags if each in _INDICES)}
        values = [each._value() for each in self.operands]
        self._walk = _plain_iterator(values, [*known], [["readonly"]] * len(values), order=order)

    def __getattr__(self, name: str) -> Any:
        if name not in _POSITIONS:
            raise AttributeError(name)
        return getattr(self._walk, name)

    @property
    def value(self) -> Any:
        """The element, or a tuple with that of each operand."""
        found = tuple(self[number] for number in range(len(self)))
        return found if len(self) > 1 else found[0]

    def __getitem__(self, number: int) -> Any:
        operand = self.operands[number]
        place = self._walk.multi_index[self._walk.ndim - operand.ndim :]
        return operand[(*(at if extent > 1 else 0 for at, extent in zip(place, operand.shape, strict=True)), ...)]

    def __setitem__(self, number: int, value: Any) -> None:
        self[number][...] = value

    def __len__(self) -> int:
        return len(self.operands)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        next(self._walk)
        return self.value

    def __enter__(self) -> _Elements:
        return self

    def __exit__(self, *failure: object) -> None:
        self._walk.close()


@records("numpy", "broadcast")
class _Broadcast:
    """What ``np.broadcast`` gives, where an operand is traced."""

    def __init__(self, trace: Trace, *operands: Any) -> None:
        self._arrays = [trace.traced(np.asarray(each)) for each in operands]
        self._plain = _plain_broadcast(*(np.empty(each.shape) for each in self._arrays))

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "ndim", "nd", "size", "numiter"):
            raise AttributeError(name)
        return getattr(self._plain, name)

    def __iter__(self) -> Iterator[Any]:
        return zip(*(np.ravel(each) for each in np.broadcast_arrays(*self._arrays)), strict=True)


records("numpy", "ndenumerate")(lambda trace, arr: ((index, arr[index]) for index in np.ndindex(np.shape(arr))))

ON_LISTS = tuple(
    "all any sum prod mean std var max min amax amin ptp median average cumsum cumprod sort argsort argmax argmin dot "
    "inner outer vdot cross trace diag clip diff reshape ravel transpose flip roll repeat tile polyval interp convolve "
    "correlate trapezoid take".split()
)
"""Functions of `numpy` whose first arguments are arrays, which users give as lists of numbers too."""
ON_LISTS_OF_LINALG = ("norm", "det", "inv", "solve")
"""Functions of `numpy.linalg` of that kind."""
JOINING = ("concatenate", "hstack")
"""Functions of `numpy` that take a sequence of arrays, some of which users give as lists of numbers."""


_SEQUENCES = {list, tuple}


def _stacked(trace: Any, value: Any) -> Any:
    return array(trace, value) if type(value) in _SEQUENCES and is_traced(value) else value


def on_lists(original: Callable[..., Any]) -> Any:
    """``original``, with lists that hold traced values stacked first."""

    def form(trace: Any, *args: Any, **keywords: Any) -> Any:
        # NumPy does not dispatch on the indices of `take`.
        if original.__name__ == "take" and any(map(is_traced, [*args[1:], keywords.get("indices")])):
            args = (trace.traced(array(trace, args[0]) if is_traced(args[0]) else args[0]), *args[1:])
        if joins and args and type(args[0]) in _SEQUENCES:
            args = ([_stacked(trace, each) for each in args[0]], *args[1:])
        else:
            args = tuple([_stacked(trace, each) for each in args])
        return original(*args, **keywords)

    recorded, joins = on_traced(original, form), original.__name__ in JOINING
    if original.__name__ == "take":
        return recorded

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        given = args[0] if joins and args and type(args[0]) in _SEQUENCES else args
        # NumPy dispatches on what is given first, and takes the others as they are if they are no lists.
        is_plain = given and is_tracer(given[0]) and _SEQUENCES.isdisjoint(map(type, given[1:]))
        return original(*args, **keywords) if is_plain else recorded(*args, **keywords)

    call.recorded_from = original  # type: ignore[attr-defined]
    return call


class Converter:
    """NumPy's private `_array_converter`, which its own functions begin with, where some of the values are traced."""

    def __init__(self, trace: Any, *values: Any) -> None:
        self.scalar_input = tuple(not np.ndim(value) for value in values)
        self._arrays = tuple(
            trace.traced(array(trace, value) if is_tracer(value) or is_traced(value) else np.asarray(value))
            for value in values
        )

    def __getitem__(self, position: int) -> Any:
        return self._arrays[position]

    def __len__(self) -> int:
        return len(self._arrays)

    def as_arrays(self, *, subok: bool = True, pyscalars: str = "convert_if_no_array") -> tuple[Any, ...]:
        """All values as arrays."""
        return self._arrays

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> Any:
        """The dtype that the values promote to."""
        extra = [] if extra_dtype is None else [extra_dtype]
        return np.result_type(*self._arrays, *extra, *([0.0] if ensure_inexact else []))

    def wrap(self, result: Any, to_scalar: bool | None = None) -> Any:
        """``result`` as the caller wants it: no subclass, and as it is."""
        return result
