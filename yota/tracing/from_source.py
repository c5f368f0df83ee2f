"""The form of a function that runs from its source, made when it is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, CodeType, FrameType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from yota.structures import package_of
from yota.tracing.conversions import Interpret, left
from yota.tracing.rewriting.definition import is_marked
from yota.tracing.source_lines import is_deep_file, is_library_file, is_own_file, passed

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


_remembered: WeakKeyDictionary[CodeType, tuple[bool, bool]] = WeakKeyDictionary()
"""Code of functions that could only be recorded from their sources, and how: `Source.wide` and `Source.deep`."""


class Source:
    """The form of a function that runs from its source, made when it is needed.

    chosen: whether this form is to run.
    wide, deep: whether all arrays that it makes are traced; whether SciPy's functions run from their sources too.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._users: list[FunctionType] = []

        def noted(inner: FunctionType) -> FunctionType:
            self._users.append(inner)
            return inner

        _replaced(function, noted)
        known = [_remembered[each.__code__] for each in self._users if each.__code__ in _remembered]
        self.chosen = bool(known)
        self.wide, self.deep = any(wide for wide, _ in known), any(deep for _, deep in known)

    @functools.cached_property
    def function(self) -> Any:
        """The form that runs from the source; the function itself where there is no source."""
        # Only who needs it pays for it.
        from yota.tracing.rewriting import interpreted as entry  # noqa: F401  (it brings all of it)
        from yota.tracing.rewriting.native_calls import taken

        return _replaced(self._function, taken)

    @property
    def is_there(self) -> bool:
        """Whether there is a source to run from, and it is not what runs anyway."""
        from yota.tracing.rewriting.definition import is_readable

        return any(map(is_readable, self._users))

    def reads(self, frame: FrameType) -> bool:
        """Whether the code of a frame would run from its source too."""
        from yota.tracing.rewriting.definition import is_readable_code

        return self.is_there and is_readable_code(frame.f_code, frame.f_globals)

    def has_loop(self, frame: FrameType | None) -> bool:
        """Whether the source shows, around what a frame runs, a loop that may be recorded as one."""
        from yota.tracing.rewriting.loops_around import is_in_loop

        return self.is_there and is_in_loop(frame)

    def goes_on(self, trace: Trace, fault: BaseException | None) -> bool:
        """Choose the next form after ``trace``: from the source, then wide, then deep. Whether one is left."""
        if not self.is_there or self.deep:
            return False
        if isinstance(fault, Interpret) and fault.deep:
            self.chosen = self.wide = self.deep = True
            return True
        if not self.chosen or (trace.is_too_narrow and not self.wide):
            self.chosen, self.wide = True, trace.is_too_narrow
            return True
        lost = left(trace)
        if passes(fault, is_deep_file) or (
            lost is not None and lost.library and lost.library.name.startswith(("scipy.", "numpy.ma."))
        ):
            self.wide = self.deep = True
        return self.deep

    def remember(self) -> None:
        """From now on, run the function from its source at once."""
        _remembered.update((each.__code__, (self.wide, self.deep)) for each in self._users)


def passes(fault: BaseException | None, is_file: Callable[[str], bool]) -> bool:
    """Whether an error, or what it was raised for, came through code in such a file."""
    while fault is not None:
        if any(is_file(each.tb_frame.f_code.co_filename) for each in passed(fault.__traceback__)):
            return True
        fault = fault.__context__
    return False


def _replaced(function: Any, change: Callable[[Any], Any], within: tuple[Any, ...] = ()) -> Any:
    """``function`` with ``change`` applied to the functions of the user's that it consists of."""
    if is_marked(function) or any(function is each for each in within):
        return function
    within = (*within, function)
    if type(function) is FunctionType:
        if not is_library_file(function.__code__.co_filename):
            return change(function)
        return _with_cells(function, change, within) if is_own_file(function.__code__.co_filename) else function
    if type(function) is MethodType:
        inner = _replaced(function.__func__, change, within)
        return function if inner is function.__func__ else functools.partial(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = _replaced(function.func, change, within)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    kind = type(function)
    if package_of(kind) != "yota" or not hasattr(function, "__dict__") or isinstance(function, type):
        return function
    parts = {name: _replaced(value, change, within) for name, value in vars(function).items() if callable(value)}
    if all(value is vars(function)[name] for name, value in parts.items()):
        return function
    found = object.__new__(type(getattr(function, "behind", function)))
    vars(found).update({**vars(function), **parts})
    return found


def _with_cells(function: FunctionType, change: Callable[[Any], Any], within: tuple[Any, ...]) -> Any:
    """A function of yota's own with the functions in its closure replaced."""
    cells = []
    for cell in function.__closure__ or ():
        value = cell.cell_contents
        inner = _replaced(value, change, within) if callable(value) else value
        cells.append(cell if inner is value else CellType(inner))
    if all(cell is other for cell, other in zip(cells, function.__closure__ or (), strict=True)):
        return function
    names = function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    found = FunctionType(function.__code__, *names)
    found.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(found, function)
