"""Putting recording forms into the numpy and math namespaces while a trace runs, and taking them out again."""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CellType, FrameType
from typing import Any

import numpy as np

from yota.tracing import library, randomness
from yota.tracing.bytecode import callee, callee_name, is_call, running
from yota.tracing.creation import CREATION, ITERATION, Concatenator
from yota.tracing.cupy_names import cupy_replacements
from yota.tracing.exact import record_call
from yota.tracing.functions import mathematics
from yota.tracing.grids import GRIDS
from yota.tracing.kinds import Namespace
from yota.tracing.lists import ON_LISTS, ON_LISTS_OF_LINALG, converter, on_lists
from yota.tracing.location import is_library
from yota.tracing.methods import is_traced
from yota.tracing.state import current

__all__ = ["imported", "recorders", "recording", "replacements"]

_INTERNAL = (
    "numpy.lib._function_base_impl",
    "numpy.lib._shape_base_impl",
    "numpy.lib._twodim_base_impl",
    "numpy.lib._nanfunctions_impl",
    "numpy.lib._stride_tricks_impl",
    "numpy.lib._index_tricks_impl",
    "numpy.lib._ufunclike_impl",
    "numpy.lib._type_check_impl",
    "numpy.lib._polynomial_impl",
    "numpy._core.fromnumeric",
    "numpy._core.numeric",
    "numpy._core.shape_base",
    "numpy._core.function_base",
    "numpy.lib._arraysetops_impl",
    "numpy.lib._scimath_impl",
    "numpy.fft._helper",
    "numpy.fft._pocketfft",
    "numpy.linalg._linalg",
    "numpy.polynomial.polyutils",
    "numpy.polynomial.polynomial",
    "numpy.polynomial.chebyshev",
    "numpy.polynomial.legendre",
    "numpy.polynomial.hermite",
    "numpy.polynomial.hermite_e",
    "numpy.polynomial.laguerre",
)
"""NumPy's modules written in Python: they are traced through, so what they call must record as well."""

_FILLING = ("numpy.polynomial.", "numpy.lib._polynomial_impl")
"""Modules of NumPy's that make plain arrays and write what they compute into them."""

_FROM_TRACED = frozenset(
    "array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite full full_like arange linspace".split()
)
"""Creation functions whose elements, and not just the shape, come from what they are given."""

_lock = threading.Lock()
_ABSENT = object()
_held: dict[tuple[int, str], tuple[Any, int]] = {}
"""The original of each name that is replaced now, and by how many traces."""


def _wrapper(original: Any, form: Callable[..., Any]) -> Any:
    @functools.wraps(original, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is None:
            return original(*args, **keywords)
        # Library code that has nothing traced in hand gets the plain arrays that it may pass on to compiled code.
        caller = sys._getframe(1)
        if (
            (is_library(caller) or not _calls(caller, call))
            and not caller.f_globals.get("__name__", "").startswith(_FILLING)
            and not any(map(is_traced, args))
            and not any(map(is_traced, keywords.values()))
        ):
            return original(*args, **keywords)
        if trace.exact and original.__name__ in _FROM_TRACED:
            found = record_call(trace, original, args, keywords)
            if found is not NotImplemented:
                return found
        return form(trace, *args, **keywords)

    call.form = form  # type: ignore[attr-defined]
    return call


def _calls(frame: FrameType, function: Any) -> bool:
    """Whether the frame itself calls ``function``: a compiled function calls without a frame of its own."""
    step = running(frame)
    if not is_call(step):
        return False
    found = callee(frame)
    return found is function if found is not None else callee_name(frame.f_code, step.offset) == function.__name__


def _on_traced(original: Any, form: Callable[..., Any]) -> Any:
    @functools.wraps(original, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        return form(trace, *args, **keywords) if trace is not None and is_traced(args) else original(*args, **keywords)

    return call


@functools.cache
def _replacements() -> list[tuple[Any, str, Any]]:
    found: list[tuple[Any, str, Any]] = []
    originals = {name: getattr(np, name) for name in CREATION}
    wrapped = {name: _wrapper(originals[name], form) for name, form in CREATION.items()}
    for module in [np, *(sys.modules[name] for name in _INTERNAL if name in sys.modules)]:
        found += [(module, name, wrapped[name]) for name, value in originals.items() if vars(module).get(name) is value]
    found += [(owner, name, _wrapper(getattr(owner, name), form)) for owner, name, form in GRIDS]
    found += [(np, name, _on_traced(getattr(np, name), form)) for name, form in ITERATION.items()]
    found += [
        (sys.modules[name], "_array_converter", converter(vars(sys.modules[name])["_array_converter"]))
        for name in _INTERNAL
        if "_array_converter" in vars(sys.modules.get(name, math))
    ]
    found += [(np, name, on_lists(getattr(np, name))) for name in ON_LISTS]
    found += [(np.linalg, name, on_lists(getattr(np.linalg, name))) for name in ON_LISTS_OF_LINALG]
    found += [(np, "r_", Concatenator(np.r_, False)), (np, "c_", Concatenator(np.c_, True))]
    found += mathematics.replacements()
    return found


def replacements() -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording form)`` for every name that records while a trace runs."""
    return [*_replacements(), *library.replacements(), *randomness.entropy(), *cupy_replacements()]


def recorders() -> dict[int, Any]:
    """Recording forms by the identity of what they stand for, and of themselves."""
    found: dict[int, Any] = {}
    for _, _, form in replacements():
        found[id(form)] = form  # another trace may have put it in a place
        if hasattr(form, "__wrapped__"):
            found[id(form.__wrapped__)] = form
    return found


def imported(
    known: Mapping[int, Any], variables: Iterable[tuple[dict[str, Any], str]], cells: Iterable[CellType]
) -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording form)`` for variables of the user's that hold a function with a ``known`` form."""
    found: list[tuple[Any, str, Any]] = []
    for names, name in variables:
        form = known.get(id(names.get(name)))
        if form is not None:
            found.append((Namespace(names), name, form))
    for cell in cells:
        try:
            form = known.get(id(cell.cell_contents))
        except ValueError:  # not filled yet
            continue
        if form is not None:
            found.append((cell, "cell_contents", form))
    return found


@contextmanager
def recording(extra: Sequence[tuple[Any, str, Any]] = ()) -> Iterator[None]:
    """Hold the recording names in place; ``extra`` are further ``(owner, name, value)`` for this trace.

    Several traces, nested or in other threads, share the names: the first one in puts each there, the last one
    out takes it away.
    """
    held = [*replacements(), *extra]
    with _lock:
        for owner, name, value in held:
            _hold(owner, name, value)
    try:
        yield
    finally:
        with _lock:
            for owner, name, _ in held:
                _release(owner, name)


def _hold(owner: Any, name: str, value: Any) -> None:
    key = _key(owner, name)
    original, count = _held.get(key, (_ABSENT, 0))
    if not count:
        original = getattr(owner, name, _ABSENT)
        setattr(owner, name, value)
    _held[key] = (original, count + 1)


def _release(owner: Any, name: str) -> None:
    key = _key(owner, name)
    original, count = _held.pop(key)
    if count > 1:
        _held[key] = (original, count - 1)
    elif original is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, original)


def _key(owner: Any, name: str) -> tuple[int, str]:
    """The same for a module and for its dictionary of global variables."""
    names = owner if isinstance(owner, type) else getattr(owner, "__dict__", owner)
    return id(names), name
