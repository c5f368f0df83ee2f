"""Lists of traced values given to NumPy's functions, which do not dispatch on what lists hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.creation import array
from yota.tracing.intercept import on_traced
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.untyped import np

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


def _stacked(trace: Any, value: Any) -> Any:
    return array(trace, value) if type(value) in (list, tuple) and is_traced(value) else value


def on_lists(original: Callable[..., Any]) -> Any:
    """``original``, with lists that hold traced values stacked first."""

    def form(trace: Any, *args: Any, **keywords: Any) -> Any:
        # NumPy does not dispatch on the indices of `take`.
        if original.__name__ == "take" and any(map(is_traced, [*args[1:], keywords.get("indices")])):
            args = (trace.traced(array(trace, args[0]) if is_traced(args[0]) else args[0]), *args[1:])
        return original(*[_stacked(trace, each) for each in args], **keywords)

    return on_traced(original, form)


def on_lists_within(original: Callable[..., Any]) -> Any:
    """``original``, which joins arrays, with lists among them that hold traced values stacked first."""

    def form(trace: Any, arrays: Any, *args: Any, **keywords: Any) -> Any:
        if type(arrays) in (list, tuple):
            arrays = [_stacked(trace, each) for each in arrays]
        return original(arrays, *args, **keywords)

    return on_traced(original, form)


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
