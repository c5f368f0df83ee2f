"""Python's built-in functions where they would take a value off the tape, or look at the frame that calls them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import numpy as np

from yota.tracing.array_protocols import source_form
from yota.tracing.creation import CREATION
from yota.tracing.current import current
from yota.tracing.methods import is_tracer, unboxed
from yota.tracing.patching import ABSENT
from yota.tracing.recording_forms import Type, has_attribute, is_instance
from yota.tracing.rewriting.rewritten import RULES
from yota.tracing.source_lines import caller
from yota.tracing.subclassed import as_float, as_kind, class_for
from yota.tracing.traced_text import Text, texts_in
from yota.tracing.writers import is_written_out


def _float(*args: Any) -> Any:
    """``float(x)``: a Python number that is still traced, so that its derivative is kept."""
    if len(args) == 1 and not is_tracer(args[0]):
        # What a class of the user's makes a number by runs from its source.
        method = getattr(type(args[0]), "__float__", None)
        form = source_form(method)
        args = args if form is method else (form(args[0]),)
    if len(args) != 1 or not is_tracer(args[0]):
        return float(*map(_read, args))
    (value,) = args
    if value.size != 1:
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    trace, user = value._trace, caller()
    if is_written_out(user, trace.outlets):
        return float(value._value())
    if trace.first_run is not None and not trace.is_constant(value._current()):
        trace.first_run.over = True  # here the first run has ended at the latest
    if value.dtype.kind == "c":
        raise value._trace.refuse("float() leaves the imaginary part out.", "Write x.real.")
    return value.item() if value.dtype.kind == "f" else value.astype(float).item()


def _made_float(kind: Any, *args: Any) -> Any:
    """``float.__new__(kind, x)``, which subclasses of float call."""
    traced = len(args) == 1 and is_tracer(args[0])
    return as_float(kind, _float(*args)) if traced else float.__new__(kind, *map(_read, args))


def _made_array(kind: Any, shape: Any, dtype: Any = float, buffer: Any = None, *args: Any, **keywords: Any) -> Any:
    """``np.ndarray.__new__(kind, shape, dtype, buffer)``: all of a traced buffer in another shape."""
    if not is_tracer(buffer):
        return np.ndarray.__new__(kind, shape, dtype, buffer, *args, **keywords)
    trace = buffer._trace
    if args or keywords or np.dtype(dtype) != buffer.dtype or np.prod(shape, dtype=int) != buffer.size:
        raise trace.refuse("an array of a part of a traced buffer is not recorded.", "Take a slice and a view.")
    found = buffer._plain().reshape(shape)
    return found if kind is np.ndarray else as_kind(trace, found, kind, None)


def _complex(*args: Any, **keywords: Any) -> Any:
    """``complex(x)`` and ``complex(x, y)``: a Python number that is still traced."""
    if keywords or not args or not any(map(is_tracer, args)):
        return complex(*map(_read, args), **keywords)
    if any(np.size(each) != 1 for each in args):
        raise TypeError("only length-1 arrays can be converted to Python scalars")
    trace = current()
    assert trace is not None
    made = CREATION["zeros"](trace, (), complex)
    made[...] = args[0]
    if len(args) > 1:
        made.imag[...] = args[1]
    return made.item()


def _cast(kind: Any, *args: Any, **keywords: Any) -> Any:
    """``np.float64(x)`` and the like, on a traced value."""
    if len(args) != 1 or keywords or not is_tracer(args[0]):
        return kind(*map(_read, args), **keywords)
    if args[0].dtype.kind == "c" and np.dtype(kind).kind == "f":
        raise args[0]._trace.refuse(f"{kind.__name__}() leaves the imaginary part out.", "Write x.real.")
    return unboxed(args[0].astype(kind))


def _read(value: Any) -> Any:
    """A text to be read as a number; its digits must not be those of a traced value."""
    if type(value) is not Text:
        return value
    trace = current()
    if value.moves and trace is not None:
        raise trace.refuse(
            "a number is read back out of the text of a traced value, which would lose its derivative.",
            "Compute with the value itself.",
        )
    value.decide()
    return str.__str__(value)


def _int(*args: Any, **keywords: Any) -> int:
    """``int(x)``, a guard if ``x`` is traced."""
    return int(*map(_read, args), **keywords)


_KINDS = (np.float16, np.float32, np.float64, np.complex64, np.complex128)
BUILT_IN: dict[Any, Callable[..., Any]] = {
    float: _float,
    float.__new__: _made_float,
    np.ndarray.__new__: _made_array,
    complex: _complex,
    int: _int,
    type: Type,
    Type: Type,
    isinstance: is_instance,
    is_instance: is_instance,
    **{kind: functools.partial(_cast, kind) for kind in _KINDS},
}
"""Recorded forms of built-in functions."""


def _variables(frame: FrameType) -> dict[str, Any]:
    """The user's variables of a frame."""
    return {name: value for name, value in frame.f_locals.items() if not name.startswith(".")}


def _super(frame: FrameType, args: tuple[Any, ...]) -> Any:
    if args and issubclass(args[0], (np.ndarray, float)) and any(map(is_tracer, args[1:])):
        args = (class_for(args[0]), *args[1:])
    return super(*args)


def _attribute(value: Any, name: str, *default: Any) -> Any:
    """``getattr``; a property of a class of the user's runs from its source."""
    try:
        return RULES["attribute"](value, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def _of_text(run: Callable[..., Any], frame: FrameType, args: tuple[Any, ...]) -> Any:
    """``eval``, which Python runs on traced values, and ``exec``, which is refused while a trace runs."""
    trace = current()
    if trace is None or run is eval:
        if trace is not None:
            trace.hold()
        for each in texts_in(args[:1]):
            each.escape()
        return run(*args) if len(args) > 1 else run(*args, frame.f_globals, _variables(frame))
    raise trace.refuse(
        "text that is run as code is not recorded from the source.", "Use yota.trace, which lets Python run it."
    )


IN_PLACE: Mapping[Any, Callable[[FrameType, tuple[Any, ...]], Any]] = {
    super: _super,
    locals: lambda frame, args: _variables(frame),
    globals: lambda frame, args: frame.f_globals,
    vars: lambda frame, args: vars(*args) if args else _variables(frame),
    dir: lambda frame, args: dir(*args) if args else sorted(_variables(frame)),
    eval: functools.partial(_of_text, eval),
    exec: functools.partial(_of_text, exec),
    hasattr: lambda frame, args: (
        has_attribute(*args) if is_tracer(args[0]) else _attribute(*args, ABSENT) is not ABSENT
    ),
    getattr: lambda frame, args: _attribute(*args),
}
"""Built-in functions whose result depends on where they are called, or on what they are given and not on its source."""
