"""What a function does outside of itself while it runs again from its source: it must not happen a second time.

A first run, by operators, came to an end somewhere. Until the second one is past that place, it prints nothing, and
ends before it would write anything that was there before.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import os
import random
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.structures import package_of
from yota.tracing.bytecode import static_attribute
from yota.tracing.creation import fresh
from yota.tracing.current import current
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.source_lines import caller, is_deep_file, is_installed_file, is_library_file
from yota.tracing.writers import Called

_CONSTANTS = (str, bytes, int, float, complex, bool, tuple, frozenset, range, type(None), type(...))
IMMUTABLE = (*_CONSTANTS, np.generic, re.Pattern, re.Match)
_READ: Mapping[type, tuple[Any, ...]] = {
    kind: tuple(getattr(kind, name) for name in names.split())
    for kind, names in {
        list: "copy count index",
        dict: "copy get items keys values",
        types.MappingProxyType: "copy get items keys values",
        Mapping: "items keys values",
        type: "mro",
        set: "copy difference intersection isdisjoint issubset issuperset symmetric_difference union",
    }.items()
}
"""Methods of Python's structures that write nothing."""
_WRITING_METHODS = tuple(
    getattr(np.ndarray, name)
    for name in "byteswap dump fill partition put resize setfield setflags sort tofile".split()
)
_WRITING = (
    *(print, input, open, exec, eval, setattr, delattr, next, breakpoint, __import__),
    *(operator.setitem, operator.delitem),
    *(getattr(operator, name) for name in dir(operator) if name.startswith("i") and f"__{name}__" in dir(operator)),
    *(np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis, np.save, np.savez, np.savetxt),
    *(np.savez_compressed, np.random.seed, np.random.shuffle),
)
"""Functions that write, or take something from where it is taken once."""
_WRITING_FIRST = (next, np.ufunc.at, np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis)
"""Functions that write their first argument."""
_MODULES = frozenset(
    "abc builtins cmath collections contextlib copy dataclasses decimal enum fractions functools inspect itertools "
    "math numbers operator re statistics string struct types typing".split()
)
"""Modules of Python's that write nothing outside of what they are given."""
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_COMPUTING = ("numpy", "scipy", "yota", "pandas", "pyarrow", "xarray", "astropy", "erfa", "sklearn", "statsmodels")
"""Packages whose compiled functions write nothing but what they are given."""


def _own() -> dict[int, Any] | None:
    """What a second run has made itself, by identity; None in a first run."""
    trace = current()
    return None if trace is None or trace.first_run is None else trace.first_run.own


def made(value: Any) -> Any:
    """``value``, known to be made by the function itself if a first run came before."""
    if (own := _own()) is not None:
        own[id(value)] = value
    return value


def is_own(value: Any) -> bool:
    """Whether a second run is known to have made ``value`` itself."""
    return id(value) in (_own() or ())


def own_if_new(value: Any) -> None:
    """Note that ``value``, a result, was made by the function itself if nothing else holds it."""
    if (own := _own()) is not None and sys.getrefcount(value) <= _NEW:
        own[id(value)] = value


def recorded_if_new(value: Any) -> Any:
    """``value``, a result; as a traced constant if it is an array that nothing else holds and the trace is wide."""
    trace = current()
    if trace is None or not trace.wide or type(value) is not np.ndarray or not value.flags.owndata:
        return value
    return fresh(trace, value) if sys.getrefcount(value) <= _NEW else value


def _references(value: Any) -> int:
    return sys.getrefcount(value)


def _of_new() -> int:
    found: list[Any] = []
    return _references(found)


_NEW = _of_new()
"""References to a new object that a variable of the caller's holds, counted in a function that it is given to."""


def writes(value: Any, traced: Any = None) -> None:
    """Note that ``value`` is about to be written; TracingError if that would be a second time."""
    trace = current()
    if trace is not None and not trace.wide and type(value) is np.ndarray and trace.varies(traced):
        trace.is_too_narrow = True
        raise trace.refuse("a traced value is written into a plain array.", "Make that inside of the function.")
    if trace is None or trace.first_run is None or trace.first_run.is_over(trace) or _is_in_library(value):
        return
    if isinstance(value, np.ndarray) and is_traced(traced):
        trace.first_run.over = True  # operators come no further
    elif not is_tracer(value) and id(value) not in trace.first_run.own:
        raise trace.first_run.block(trace)


def _is_in_library(value: Any = None) -> bool:
    """Whether code of a library is at work that writes nothing but what it makes, and its own caches."""
    user = caller()
    if user is None:
        return False
    name = user.f_code.co_filename
    is_cache = type(value) is dict and is_installed_file(name)
    return is_library_file(name) or is_cache or f"-packages{os.sep}astropy{os.sep}" in name


def enters(context: Any) -> None:
    """Note that Python is about to enter a context, which may write."""
    if not isinstance(context, (np.errstate, contextlib.suppress, contextlib.nullcontext)):
        writes(context)


def is_done(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """Whether a call only prints or logs, and did so before; TracingError if it may have done something else."""
    trace = current()
    if trace is None or trace.first_run is None or trace.first_run.is_over(trace):
        return False
    if not trace.first_run.may_draw and _draws(function, args, keywords):
        raise trace.first_run.block(trace)
    if _is_in_library():
        return False
    called = Called.of(function, trace.outlets.unknown(keywords.items()), len(args))
    if called.writes(trace.outlets) and trace.first_run.skips_output:
        trace.first_run.skipped = True
        return True
    is_print = function is print and id(keywords.get("file", sys.stdout)) in trace.first_run.own
    if (
        is_print
        or (function is __import__ and args[0] in sys.modules)
        # What it writes is its first argument alone, which the function has made.
        or (
            any(called.function is each for each in _WRITING_FIRST)
            and (is_tracer(args[0]) or id(args[0]) in trace.first_run.own)
        )
        or _is_harmless(called, keywords, trace.first_run.own)
    ):
        return False
    if not (is_traced([*args, *keywords.values()]) and trace.first_run.arrives(trace)):
        raise trace.first_run.block(trace)
    return False


def _draws(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> bool:
    """Whether a call is given a generator of random numbers, or is a method of one."""
    return any(
        isinstance(each, _GENERATORS) for each in (getattr(function, "__self__", None), *args, *keywords.values())
    )


def _is_harmless(called: Called, keywords: Mapping[str, Any], own: Mapping[int, Any]) -> bool:
    """Whether a call writes nothing but what the function made itself."""
    function, owner = called.function, called.owner
    if any(function is each for each in _WRITING) or function in _WRITING_METHODS:
        return owner is not None and id(owner) in own
    if "out" in keywords and not is_tracer(keywords["out"]) and id(keywords["out"]) not in own:
        return False
    if is_tracer(owner) or isinstance(owner, IMMUTABLE) or id(owner) in own:
        return True
    if package_of(function) == "tqdm":
        return True  # a progress bar may be shown again
    if isinstance(function, type):
        return _makes_plainly(function)
    if function is object.__new__:
        return True
    if isinstance(function, np.ufunc) or isinstance(owner, np.ufunc):
        return function is not np.ufunc.at
    if isinstance(owner, type) and owner.__module__ in _MODULES:
        return True
    reads = any(function in _READ.get(kind, ()) for kind in type(owner).__mro__)
    return reads or isinstance(owner, np.ndarray) or _is_known(function)


def _is_known(function: Any) -> bool:
    """Whether a function is NumPy's or SciPy's, or one of Python's that only compute."""
    code = getattr(function, "__code__", None)
    if code is not None:
        name = code.co_filename
        return is_deep_file(name) or any(name == getattr(sys.modules.get(each), "__file__", "") for each in _MODULES)
    home = getattr(function, "__self__", None)
    if isinstance(home, types.ModuleType):
        return home.__name__ in _MODULES or home.__name__.startswith(("numpy", "scipy", "_operator", "_functools"))
    return package_of(function) in _COMPUTING


def _makes_plainly(kind: type) -> bool:
    """Whether to make an object of a class does nothing else."""
    begins = (static_attribute(kind, "__init__"), static_attribute(kind, "__new__"))
    if dataclasses.is_dataclass(kind):
        return not hasattr(kind, "__post_init__")
    return not any(isinstance(each, types.FunctionType) for each in begins) or (
        issubclass(kind, tuple) and hasattr(kind, "_fields")
    )
