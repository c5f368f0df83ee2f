"""Patches the names that traced code takes functions from, and restores them when the trace ends."""

from __future__ import annotations

import functools
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from yota.structures import package_of
from yota.tracing import library, patching, randomness
from yota.tracing.bytecode import called_at, callee, is_call, running
from yota.tracing.creation import CREATION, GRIDS, vectorized
from yota.tracing.cupy_names import cupy_replacements
from yota.tracing.current import current, paused
from yota.tracing.exact import record_call
from yota.tracing.implementations import CALLING, FORMS, register_loaded
from yota.tracing.intercept import on_traced
from yota.tracing.iteration import JOINING, ON_LISTS, ON_LISTS_OF_LINALG, Converter, on_lists
from yota.tracing.methods import as_traced, is_traced, is_tracer
from yota.tracing.observation import Running
from yota.tracing.patch_targets import Installed, PatchTargets
from yota.tracing.patching import ABSENT, Patch, PatchGroup
from yota.tracing.source_lines import is_library
from yota.tracing.trace import Trace

_INTERNAL = """
    numpy.lib._function_base_impl numpy.lib._shape_base_impl numpy.lib._twodim_base_impl numpy.lib._nanfunctions_impl
    numpy.lib._stride_tricks_impl numpy.lib._index_tricks_impl numpy.lib._ufunclike_impl numpy.lib._type_check_impl
    numpy.lib._polynomial_impl numpy._core.fromnumeric numpy._core.numeric numpy._core.shape_base
    numpy._core.function_base numpy.lib._arraysetops_impl numpy.lib._scimath_impl numpy.fft._helper numpy.fft._pocketfft
    numpy.linalg._linalg numpy.polynomial.polyutils numpy.polynomial.polynomial numpy.polynomial.chebyshev
    numpy.polynomial.legendre numpy.polynomial.hermite numpy.polynomial.hermite_e numpy.polynomial.laguerre
""".split()
"""NumPy's modules written in Python: they are traced through, so what they call must record as well."""

_FILLING = ("numpy.polynomial.", "numpy.lib._polynomial_impl", "scipy.stats.")
"""Modules of libraries that make plain arrays and write what they compute into them."""

_FROM_TRACED = frozenset(
    "array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite full full_like arange linspace".split()
)
"""Creation functions whose elements, and not just the shape, come from what they are given."""

_OF_NUMPY = os.path.dirname(os.path.abspath(np.__file__ or "")) + os.sep


def _wrapper(original: Any, form: Callable[..., Any]) -> Any:
    @functools.wraps(original, updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is None:
            return original(*args, **keywords)
        # Library code that has nothing traced in hand gets the plain arrays that it may pass on to compiled code.
        caller = sys._getframe(1)
        if not is_traced([*args, *keywords.values()]) and not (
            _calls(caller, call)
            and (
                not is_library(caller)
                or caller.f_globals.get("__name__", "").startswith(_FILLING)
                or _has_traced(trace, caller)
            )
        ):
            try:
                return original(*args, **keywords)
            except ValueError:
                if not args or not is_tracer(as_traced(args[0])):
                    raise
        if _makes_output(caller) and original.__name__ == "asarray":
            return args[0]  # the array to be written itself, and no copy of it
        if original.__name__ in _FROM_TRACED and _runs_compiled(caller):
            # What it makes of the array reads memory, which a traced value does not have.
            return original(*args, **keywords)
        if trace.exact and original.__name__ in _FROM_TRACED:
            found = record_call(trace, original, args, keywords)
            if found is not NotImplemented:
                return found
        return form(trace, *args, **keywords)

    call.form = form  # type: ignore[attr-defined]
    return call


def _has_traced(trace: Trace, frame: FrameType | None) -> bool:
    """Whether code of SciPy's has a traced value in hand that is no constant, or what called its private library."""
    while frame is not None and (name := frame.f_globals.get("__name__", "")).startswith("scipy."):
        if _holds_traced(trace, frame):
            return True
        frame = frame.f_back if _makes_output(frame) or name.startswith("scipy._lib.") else None
    return False


def _makes_output(frame: FrameType) -> bool:
    """Whether a function of scipy.ndimage runs in a frame that makes the array for the result, or takes a given one."""
    return frame.f_code.co_name.startswith("_get_output")


def _holds_traced(trace: Trace, frame: FrameType) -> bool:
    """Whether a variable of a frame, or an attribute of a library's object in it, is a traced value that varies."""
    names = frame.f_locals
    owners = [each for each in names.values() if type(each).__module__.startswith("scipy.") and not is_tracer(each)]
    if "self" in names:
        owners.append(names["self"])
    held = [*names.values()]
    for owner in owners:
        held += getattr(owner, "__dict__", {}).values()
        held += [getattr(owner, each, None) for kind in type(owner).__mro__ for each in getattr(kind, "__slots__", ())]
    if frame.f_globals["__name__"].startswith("scipy.sparse."):
        held += _numbers_of(names.values())
    return any(map(trace.varies, held))


def _numbers_of(values: Iterable[Any]) -> Iterator[Any]:
    """The numbers of sparse matrices among ``values``, or in lists and arrays of such."""
    for each in values:
        if type(each) in (list, tuple, np.ndarray) and (type(each) is not np.ndarray or each.dtype == object):
            yield from _numbers_of(each)
        elif str(type(each).__module__).startswith("scipy.sparse."):
            yield getattr(each, "data", None)


def _runs_compiled(frame: FrameType) -> bool:
    """Whether the frame calls a function or a class of an extension module, which runs without a frame of its own."""
    step = running(frame)
    found = callee(frame) if is_call(step) else None
    module = sys.modules.get(getattr(found, "__module__", None) or "")
    file = getattr(module, "__file__", None) or ""
    return file.endswith((".so", ".pyd")) and not isinstance(found, FunctionType) and not file.startswith(_OF_NUMPY)


def _calls(frame: FrameType, function: Any) -> bool:
    """Whether the frame itself calls ``function``: a compiled function calls without a frame of its own."""
    step = running(frame)
    if not is_call(step):
        return False
    found = callee(frame)
    while isinstance(found, (staticmethod, functools.partial)):
        found = found.__func__ if isinstance(found, staticmethod) else found.func
    if callable(found):
        return found is function
    # An item of a container is called, as in `makers[0](3)`, or what a name stands for is not known.
    return found is not None or called_at(frame.f_code, step.offset).name == function.__name__


@functools.cache
def _replacements() -> list[tuple[Any, str, Any]]:
    found: list[tuple[Any, str, Any]] = []
    originals = {name: getattr(np, name) for name in CREATION}
    wrapped = {name: _wrapper(originals[name], form) for name, form in CREATION.items()}
    for module in [np, *(sys.modules[name] for name in _INTERNAL if name in sys.modules)]:
        found += [(module, name, wrapped[name]) for name, value in originals.items() if vars(module).get(name) is value]
    found += [(owner, name, _wrapper(getattr(owner, name), form)) for owner, name, form in GRIDS]
    found.append((np.vectorize, "__call__", on_traced(vars(np.vectorize)["__call__"], vectorized)))
    found += [
        (sys.modules[name], "_array_converter", on_traced(vars(sys.modules[name])["_array_converter"], Converter))
        for name in _INTERNAL
        if "_array_converter" in vars(sys.modules.get(name, math))
    ]
    found += [(np, name, on_lists(getattr(np, name))) for name in (*ON_LISTS, *JOINING)]
    found += [(np.linalg, name, on_lists(getattr(np.linalg, name))) for name in ON_LISTS_OF_LINALG]
    return found


def prepared(own: Mapping[int, Any] | None = None) -> Installed:
    """Recording forms of libraries and ``own`` ones, and the names in installed packages that are to hold them."""
    known = _standard(_concerned(len(sys.modules)), sys.modules.get("cupy"))[1]
    return _extended(known, tuple(own.items())) if own else known


@functools.lru_cache(4)
def _extended(known: Installed, own: tuple[tuple[int, Any], ...]) -> Installed:
    return Installed({**known.forms, **dict(own)}, known.of_scipy)


@functools.lru_cache(4)
def _concerned(modules: int) -> int:
    """How many of the loaded modules belong to packages with functions that record."""
    register_loaded()
    packages = {"numpy", "cupy", "cupyx", "random", *(package_of(module) for module, _ in (*FORMS, *CALLING))}
    return sum(package_of(name) in packages for name in list(sys.modules))


@functools.lru_cache(4)
def _standard(modules: int, cupy: Any) -> tuple[PatchGroup, Installed]:
    """The patches of NumPy and Python, and those of others; there are more when more modules are loaded, as CuPy."""
    found: list[Patch] = []
    of_scipy: list[Patch] = []
    forms: dict[int, Any] = {}
    for owner, name, form in (*_replacements(), *library.replacements(), *randomness.entropy(), *cupy_replacements()):
        original = form.__wrapped__
        forms[id(form)] = forms[id(original)] = form
        if original is np.broadcast:
            continue  # extension modules that other threads import look for this type under its name
        group = of_scipy if package_of(owner) == "scipy" else found
        if isinstance(owner, type):
            known = vars(owner).get(name, ABSENT)
            if isinstance(known, staticmethod):
                group.append(Patch(owner, name, known, staticmethod(form)))
            else:
                group.append(Patch(owner, name, known if known is ABSENT else original, form))
        else:
            group.append(Patch(owner if isinstance(owner, dict) else vars(owner), name, original, form))
    return PatchGroup([*found, *_importers()]), Installed(forms, of_scipy)


@functools.lru_cache(16)
def _group(modules: int, cupy: Any, installed: Installed, reached: tuple[tuple[str, int], ...]) -> PatchGroup:
    """The patches of NumPy and Python, and those that packages need: a number of them each."""
    more = [patch for package, count in reached for patch in installed.packages[package].patches[:count]]
    standard = _standard(modules, cupy)[0]
    return PatchGroup([*standard.patches, *more]) if more else standard


class PatchedNames:
    """The patches of one trace, from the time that it is entered; traces, nested or in other threads, share them."""

    def __init__(
        self, installed: Installed, roots: Iterable[Any], extra: Sequence[Patch] = (), *, everything: bool = False
    ) -> None:
        self.targets = PatchTargets(installed)
        self._installed, self._roots, self._everything = installed, roots, everything
        self._held = [*extra]
        self.thread = threading.get_ident()
        self.is_withdrawn = False

    def __enter__(self) -> None:
        _active.append(self)
        if self._everything:
            self.targets.reach_scipy()
        self._held += self.targets.take(self._roots)
        self._reached = {**self.targets.reached}
        self._enter()

    def _enter(self) -> None:
        reached = tuple(sorted(self._reached.items()))
        self._group = _group(_concerned(len(sys.modules)), sys.modules.get("cupy"), self._installed, reached)
        patching.enter(self._group, self._held)

    def __exit__(self, *failure: object) -> None:
        _active.remove(self)
        patching.leave(self._group, self._held)

    def take(self, roots: Iterable[Any]) -> None:
        """Patch every name that ``roots`` take functions from."""
        before, more = {**self.targets.reached}, self.targets.take(roots)
        for package, count in self.targets.reached.items():
            more += self._installed.packages[package].patches[before.get(package, 0) : count]
        patching.hold(more)
        self._held += more

    def run(self, found: Running) -> None:
        """Take in code that runs, of which nothing else told."""
        if self in _active:
            self.take([found])

    @contextmanager
    def withdrawn(self) -> Iterator[None]:
        """Have nothing in place meanwhile, and what records of modules that are loaded meanwhile afterwards."""
        patching.leave(self._group, self._held)
        self.is_withdrawn, known = True, prepared()
        try:
            yield
        finally:
            self.is_withdrawn = False
            later = prepared()
            if later is not known and "scipy" in sys.modules:
                self._held += later.follow("scipy", (), set()).patches
            self._enter()


_active: list[PatchedNames] = []


def _importers() -> list[Patch]:
    """Patches of what runs the code of modules, which must run as if nothing were traced."""
    bootstrap, external = sys.modules["_frozen_importlib"], sys.modules["_frozen_importlib_external"]
    find, loader = vars(bootstrap)["_find_and_load"], vars(external)["_LoaderBasics"]
    execute = vars(loader)["exec_module"]
    forms = [_plainly(getattr(each, "__wrapped__", each)) for each in (find, execute)]
    return [
        Patch(vars(bootstrap), "_find_and_load", forms[0].__wrapped__, forms[0]),
        Patch(loader, "exec_module", forms[1].__wrapped__, forms[1]),
    ]


@functools.cache
def _plainly(original: Any) -> Any:
    """``original``, which imports a module, as it runs where nothing is traced."""

    @functools.wraps(original)
    def call(*args: Any) -> Any:
        active, thread = list(_active), threading.get_ident()
        mine = [each for each in active if each.thread == thread and not each.is_withdrawn]
        if not mine:
            return original(*args)
        loads = type(args[0]) is not str or args[0] not in sys.modules
        with paused(), ExitStack() as withdrawn:
            if loads and all(each.thread == thread for each in active):  # no other thread is tracing
                for each in mine:
                    withdrawn.enter_context(each.withdrawn())
            found = original(*args)
        # It gives the module, or is given it.
        for each in mine:
            each.take([part for part in (found, *args) if isinstance(part, ModuleType)])
        return found

    return call
