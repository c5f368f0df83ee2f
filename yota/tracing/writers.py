"""Functions that write out what they are given, or only make text of it; and whether a value is only written out."""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import sys
import types
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from yota.tracing import progress_bars
from yota.tracing.bytecode import (
    UNKNOWN,
    consumer,
    is_call,
    keywords,
    operand_before,
    positional,
    resolved,
    running,
    static_attribute,
)
from yota.tracing.outlets import Outlets, is_library_code
from yota.tracing.source_lines import Rewritten, is_library_file, rewritten

_PRINT = print
_TEXT = (str, repr, ascii, format, str.format, str.join, np.array2string, np.array_str, np.array_repr)
_NUMBERS = (float, int, complex, round)
_LEVELS = tuple("debug info warning warn error critical exception log".split())
_WRITERS: dict[str, tuple[str, ...]] = {
    "pprint": ("pprint", "pp"),
    "warnings": ("warn",),
    "_warnings": ("warn",),
    "logging": (*_LEVELS, *(f"{kind}.{name}" for kind in ("Logger", "LoggerAdapter") for name in _LEVELS)),
    "tqdm.std": tuple(f"tqdm.{name}" for name in ("write", *progress_bars.METHODS)),
    "rich": ("print",),
    "rich.console": ("Console.print", "Console.log"),
    "click.utils": ("echo",),
    "click.termui": ("secho",),
}
"""By the module that defines them, functions that write what they are given and keep nothing of it."""


@functools.lru_cache(8)
def _writers(modules: int) -> dict[int, Any]:
    """By identity, those of `_WRITERS` whose modules are loaded; not what somebody else put into their places."""
    found: dict[int, Any] = {}
    for module, names in _WRITERS.items():
        owner = sys.modules.get(module)
        for name in names if owner is not None else ():
            value: Any = functools.reduce(static_attribute, name.split("."), owner)
            if isinstance(value, types.BuiltinFunctionType) or getattr(value, "__globals__", None) is vars(owner):
                found[id(value)] = value
    return found


_STREAMS = frozenset(("file", "stream"))


@functools.lru_cache(64)
def _stream_place(function: Any) -> int | None:
    """The position of a writer's argument that is a stream, if there is one."""
    if not isinstance(function, types.FunctionType):
        return None
    code = function.__code__
    names = [name for name in code.co_varnames[: code.co_argcount] if name not in ("self", "cls")]
    return next((place for place, name in enumerate(names) if name in _STREAMS), None)


@dataclass(frozen=True, slots=True)
class Called:
    """A function, not bound, and its owner (None for a variable).

    keywords, count: keywords of the call and how many positional arguments it has; None if they are not known.
    """

    owner: Any
    function: Any
    keywords: tuple[str, ...] | None = ()
    count: int | None = None

    @classmethod
    def of(cls, function: Any, keywords: tuple[str, ...] | None, count: int | None = None) -> Called:
        """A function that may be a bound method."""
        owner = getattr(function, "__self__", None)
        inner = getattr(function, "__func__", None)
        if inner is None and owner is not None and not isinstance(owner, types.ModuleType):
            inner = static_attribute(owner if isinstance(owner, type) else type(owner), function.__name__)
        return cls(owner, function if inner is None or inner is UNKNOWN else inner, keywords, count)

    def writes(self, outlets: Outlets) -> bool:
        """Whether the call writes out what it is given, and keeps nothing of it."""
        function, owner = self.function, self.owner
        if function is _PRINT:
            return not self._names_stream and sys.stdout in outlets
        if any(function is static_attribute(type(owner), name) for name in ("write", "writelines")):
            if owner in outlets:
                return True
            return outlets.takes_file(owner)
        if id(function) not in _writers(len(sys.modules)) or self._names_stream or not outlets.are_standard:
            return False
        module = getattr(function, "__module__", "")
        if module in ("warnings", "_warnings"):
            return outlets.shows_warnings
        if module == "tqdm.std" and function.__name__ in progress_bars.METHODS:
            return progress_bars.shows(owner, outlets)
        if module in ("rich", "rich.console"):
            return _shows_plainly(sys.modules["rich"]._console if module == "rich" else owner)
        return module != "logging" or _logs_plainly(owner, sys.modules["logging"], outlets)

    @property
    def _names_stream(self) -> bool:
        """Whether the call may name a stream that it writes to."""
        if self.keywords is None or not _STREAMS.isdisjoint(self.keywords):
            return True
        place = _stream_place(self.function)
        return place is not None and (self.count is None or self.count > place)

    @property
    def converts(self) -> bool:
        """Whether the call only makes a text or a number of what it is given."""
        return self.makes_text or any(self._original is each for each in _NUMBERS)

    @property
    def makes_text(self) -> bool:
        """Whether the call makes a text."""
        return any(self._original is each for each in _TEXT)

    @property
    def is_exception(self) -> bool:
        """Whether the call makes an exception that holds what it is given, and does no more."""
        kind = self.function
        return (
            isinstance(kind, type)
            and issubclass(kind, BaseException)
            and not isinstance(kind.__init__, types.FunctionType)
            and not isinstance(kind.__new__, types.FunctionType)
        )

    @property
    def _original(self) -> Any:
        """What a recording form that stands in a namespace while a trace runs was put there for."""
        code = getattr(self.function, "__code__", None)
        if code is not None and is_library_file(code.co_filename):
            return getattr(self.function, "__wrapped__", self.function)
        return self.function


def _logs_plainly(owner: Any, logging: Any, outlets: Outlets) -> bool:
    """Whether a logger, or the module itself, handles records by code of Python's own, and none is read back."""
    if type(owner) is logging.LoggerAdapter:
        return _logs_plainly(owner.logger, logging, outlets)
    if owner is None or owner is logging:
        owner = logging.root
    if logging.getLogRecordFactory() is not logging.LogRecord:
        return False
    while owner is not None:
        if type(owner) not in (logging.Logger, logging.RootLogger) or owner.filters:
            return False
        if not all(_handles_plainly(each, outlets) for each in owner.handlers):
            return False
        owner = owner.parent if owner.propagate else None
    return True


def _handles_plainly(handler: Any, outlets: Outlets) -> bool:
    """Whether a handler of a logger, and the one it hands records to, is code of Python's own that is not read back."""
    parts = [getattr(handler, name, None) for name in ("formatter", "target")]
    if handler.filters or not all(each is None or _is_library_object(each) for each in (handler, *parts)):
        return False
    return outlets.takes_file(getattr(handler, "stream", None)) or outlets.holds(handler)


def _shows_plainly(console: Any) -> bool:
    """Whether a console of rich's writes to standard output alone."""
    if console is None:
        return True
    if type(console).__module__ != "rich.console" or console.record or console._render_hooks or console._file:
        return False
    # What it captures is in buffers, of which each running call has one.
    own = {getattr(console, name).__code__ for name in ("print", "log")}
    frame, calls = sys._getframe(), 0
    while frame.f_back is not None:
        frame = frame.f_back
        calls += frame.f_code in own and frame.f_locals["self"] is console
    return bool(console._buffer_index <= calls)


def _is_library_object(value: Any) -> bool:
    """Whether all methods of an object are code of Python's or of an installed library."""
    return not vars(value).keys() & {"emit", "format", "handle", "filter"} and all(
        is_library_code(each)
        for kind in type(value).__mro__
        for each in vars(kind).values()
        if isinstance(each, types.FunctionType)
    )


_FORMATS = ("FORMAT_", "CONVERT_", "BUILD_STRING")
_SEQUENCES = ("BUILD_TUPLE", "BUILD_LIST")


def is_written_out(user: FrameType | None, outlets: Outlets) -> bool:
    """Whether what the running instruction of the user's makes of a value is only written out, raised or dropped."""
    if user is None:
        return False
    if (known := rewritten.get(id(user.f_code))) is not None:
        return _is_expression_written_out(user, known, outlets)
    code, step, is_text = user.f_code, running(user), False
    while True:
        following = consumer(code, step.offset)
        if is_call(step):
            found = resolved(user, step.offset)
            if found is None:
                return False
            called = Called(*found, keywords(code, step.offset), positional(code, step.offset))
            if called.writes(outlets):
                return True
            raised = following is not None and following.opname == "RAISE_VARARGS"
            if raised and is_text and called.is_exception:
                outlets.raised = True
                return True
            if not called.converts:
                return False
            is_text = is_text or called.makes_text
        elif step.opname.startswith(_FORMATS) or _formats(user, step):
            is_text = True
        elif step.opname not in _SEQUENCES and not (is_text and _is_operator(step, "+", "BINARY_ADD")):
            return False
        if following is None or following.opname == "POP_TOP":
            return following is not None
        step = following


def _formats(frame: FrameType, step: dis.Instruction) -> bool:
    """Whether an instruction is the operator % with a text, written in the code, on its left."""
    left = operand_before(frame.f_code, step.offset, 2) if _is_operator(step, "%", "BINARY_MODULO") else None
    return left is not None and left.opname == "LOAD_CONST" and isinstance(left.argval, str)


def _is_operator(step: dis.Instruction, symbol: str, before_311: str) -> bool:
    return step.opname == before_311 or (step.opname == "BINARY_OP" and step.argrepr == symbol)


_PARTS = (ast.Tuple, ast.List, ast.Starred, ast.keyword, ast.Constant)
"""Before Python 3.12 all parts of a text with values in it stand at the same place."""
_TEXTS = (ast.JoinedStr, ast.FormattedValue)


def _is_expression_written_out(user: FrameType, code: Rewritten, outlets: Outlets) -> bool:
    """The same of code that was rewritten, whose instructions are others: by the expression that is evaluated."""
    part, parents, is_text = code.part(user.f_lasti), code.definition.parents, False
    while part is not None:
        above = parents.get(part)
        inner = part
        while isinstance(above, ast.IfExp) and inner is not above.test:
            # A choice may give the value as it is.
            inner, above = above, parents.get(above)
        if isinstance(part, ast.Call):
            function = _static(user, part.func)
            if function is UNKNOWN:
                return False
            named = outlets.unknown((each.arg, _static(user, each.value)) for each in part.keywords)
            count = None if any(isinstance(each, ast.Starred) for each in part.args) else len(part.args)
            called = Called.of(function, named, count)
            if called.writes(outlets):
                return True
            if not called.converts:
                return False
            is_text = is_text or called.makes_text
        elif isinstance(part, _TEXTS) or _formats_text(part):
            is_text = True
        elif not isinstance(part, _PARTS) and not (
            is_text and isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
        ):
            return False
        if isinstance(above, ast.Attribute):
            above = parents.get(above)
        if above is None or isinstance(above, ast.Expr):
            return above is not None
        part = above
    return False


def _static(user: FrameType, part: ast.expr) -> Any:
    """The value of a variable, or of attributes of one, without running code."""
    if isinstance(part, ast.Attribute):
        owner = _static(user, part.value)
        found = static_attribute(owner, part.attr)
        # A method that was bound tells what it writes to.
        is_method = isinstance(found, (types.FunctionType, types.MethodDescriptorType))
        if is_method and not isinstance(owner, (types.ModuleType, type)):
            return types.MethodType(found, owner)
        return found
    if not isinstance(part, ast.Name):
        return UNKNOWN
    return user.f_locals.get(part.id, user.f_globals.get(part.id, vars(builtins).get(part.id, UNKNOWN)))


def _formats_text(part: ast.AST) -> bool:
    """Whether an expression is the operator % with a text, written in the code, on its left."""
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)):
        return False
    left = part.left
    return isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and type(left.value) is str)
