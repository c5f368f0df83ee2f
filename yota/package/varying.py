"""Constants of modules: arrays as text, each written once, and those that depend on sizes as arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.numpy_literals import UNNAMED, by_rows, dtype_argument, dtype_text, scalar
from yota.errors import ArgumentError, CodegenError
from yota.ir.extents import Extent
from yota.ir.regions import changed
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting
from yota.schedule.nests.index_patterns import index_arrays
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.generalise import General
from yota.transform.sizes.size_ops import emitted

_MOST = 1 << 16
"""Elements of one array that a module may carry."""
_COLUMNS = 80


class Constants:
    """Module-level names for constants; equal ones share a name."""

    def __init__(self) -> None:
        self._names = Names()
        self._known: dict[str, str] = {}
        self.lines: list[str] = []
        """Assignments, in order."""

    def text(self, hint: str, expression: str) -> str:
        """Name of the value of ``expression``."""
        if expression not in self._known:
            name = self._known[expression] = self._fresh(hint)
            self.lines.append(f"{name} = {expression}")
        return self._known[expression]

    def display(self, hint: str, expression: str) -> str:
        """Name of the small array that ``expression``, a call of ``np.array`` or the like, makes."""
        value = evaluated(expression, {})
        form = _form(value) if isinstance(value, np.ndarray) else None
        return self._formed(hint, form) if form else self.text(hint, expression)

    def array(self, hint: str, value: np.ndarray[Any, Any]) -> str:
        """Name of an array."""
        kind = value.dtype.kind
        if kind not in "biufc" or value.dtype.itemsize > (16 if kind == "c" else 8):
            raise CodegenError(f"the constant {hint} has dtype {value.dtype}, which a module cannot spell")
        if value.size > _MOST:
            raise CodegenError(
                f"the function uses an array of {value.size} elements of its surroundings, more than the {_MOST} that "
                "a module may carry; pass it as an argument"
            )
        form = _form(value)
        return self._formed(hint, form) if form else self._listed(hint, value)

    def _formed(self, hint: str, form: str) -> str:
        return self.text(name_of_form(form) if hint.startswith(UNNAMED) else hint, form)

    def _listed(self, hint: str, value: np.ndarray[Any, Any]) -> str:
        """An array whose elements stand in a string, many to a line."""
        value, turned = by_rows(value)
        flat = np.ascontiguousarray(value).ravel()
        if value.dtype.kind == "c":
            flat = flat.view(np.dtype(f"f{value.dtype.itemsize // 2}"))
        if value.dtype.kind == "b":
            flat = flat.view(np.int8)
        words = " ".join(str(item) for item in flat.tolist())
        rows = textwrap.wrap(words, _COLUMNS, break_long_words=False, break_on_hyphens=False)
        key = f"{words} {value.dtype} {value.shape} {turned}"
        if key not in self._known:
            table, name = self._fresh(f"{hint}_text"), self._fresh(hint)
            made = f"np.array({table}.split(), {dtype_text(flat.dtype)})"
            made += f".view({dtype_text(value.dtype)})" if flat.dtype != value.dtype else ""
            made += f".reshape({', '.join(map(str, value.shape))})" if value.ndim != 1 else ""
            made += turned
            self.lines += ["\n".join([f'{table} = """', *rows, '"""']), f"{name} = {made}"]
            self._known[key] = name
        return self._known[key]

    def _fresh(self, hint: str) -> str:
        return f"_{self._names.fresh(hint)}"


def name_of_form(text: str) -> str:
    """What an array is called that ``text`` makes, where the function gives it no name.

    >>> name_of_form("np.arange(N, dtype=np.int64)"), name_of_form("1.0 - np.eye(3)")
    ('positions', 'off_diagonal')
    """
    if "_indices(" in text:
        return "rows" if "[0]" in text else "columns"
    text = text.removeprefix("np.broadcast_to(").lstrip("(")
    found = next((name for start, name in _FORMS if text.startswith(start)), UNNAMED)
    return "positions" if found == UNNAMED and "np.arange(" in text else found


_FORMS = (
    ("np.arange(", "positions"),
    ("np.linspace(", "grid"),
    ("np.fft.", "frequencies"),
    ("np.hanning(", "window"),
    ("np.hamming(", "window"),
    ("np.blackman(", "window"),
    ("np.bartlett(", "window"),
    ("np.ones(", "ones"),
    ("np.zeros(", "zeros"),
    ("np.full(", "filled"),
    ("np.eye(", "identity"),
    ("np.tri(", "triangle"),
    ("1.0 - np.eye(", "off_diagonal"),
    ("np.where(np.eye(", "diagonal"),
    ("np.where(np.tri(", "triangle"),
)


def _form(value: np.ndarray[Any, Any]) -> str | None:
    """An expression for an array of a well-known form."""
    size = str(value.shape[0] if value.ndim == 1 else value.shape)
    dtype = dtype_argument(value.dtype)
    if value.size == 0:
        return f"np.zeros({size}{dtype})"
    first = value.flat[0]
    for name in ("ones", "zeros"):
        if _same(value, getattr(np, name)(value.shape, value.dtype)):
            return f"np.{name}({size}{dtype})"
    if _same(value, np.full(value.shape, first)):
        literal = scalar(first)
        return None if literal is None else f"np.full({size}, {literal}{dtype})"
    if value.ndim == 2 and value.shape[0] == value.shape[1]:
        for text, made in (("np.eye({})", np.eye(len(value))), ("1.0 - np.eye({})", 1.0 - np.eye(len(value)))):
            if value.dtype == np.float64 and _same(value, made):
                return text.format(len(value))
    if value.ndim == 1 and value.dtype.kind in "iu" and _same(value, np.arange(len(value)).astype(value.dtype)):
        return f"np.arange({len(value)}, dtype={dtype_text(value.dtype)})"
    return None


def _same(value: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    return other.dtype == value.dtype and other.tobytes() == np.ascontiguousarray(value).tobytes()


@dataclass(frozen=True, slots=True)
class Varying:
    """A constant that depends on sizes.

    type: its type; the shape is that of the first sample.
    values: the constant at each of the sizes at which the function was traced.
    """

    hint: str
    text: str
    type: TensorType
    values: tuple[Any, ...] = ()


def separated(general: General, change: Callable[[Extent], int]) -> tuple[Tape, tuple[Varying, ...]]:
    """The tape for all sizes, ``change`` applied to its extents, and the constants that are its last inputs."""
    own = general.cases
    numbers = {variable: place for place, variable in enumerate(general.tape.constants)}
    found: dict[tuple[str, TensorType], list[int]] = {}
    for variable, text in general.constants.items():
        found.setdefault((text, own[0].types[variable]), []).append(variable)
    varying = [
        Varying(
            _hint(general, first, text),
            text,
            type,
            tuple(list(tape.constants.values())[numbers[first]] for tape in own),
        )
        for (text, type), (first, *_) in found.items()
    ]
    return _with_inputs(changed(general.tape, change), varying, list(found.values())), tuple(varying)


def _hint(general: General, variable: int, text: str) -> str:
    named = general.tape.types[variable].shape
    return general.tape.names.get(variable) or (name_of_form(text) if named else "scale")


def _with_inputs(tape: Tape, varying: Sequence[Varying], variables: Sequence[Sequence[int]]) -> Tape:
    """The tape with further inputs in place of constants."""
    rewriting = Rewriting(tape)
    for number, (each, own) in enumerate(zip(varying, variables, strict=True)):
        made = rewriting.builder.input(tape.types[own[0]], len(tape.inputs) + number, each.hint)
        rewriting.mapping |= dict.fromkeys(own, made)
    for op in tape.ops:
        rewriting.copy(op)
    return rewriting.finish()


def computed(general: General, change: Callable[[Extent], int], sizes: Mapping[str, int]) -> Tape:
    """The tape for all sizes, with ops that compute from ``sizes`` what depends on them."""
    for each in general.cases:
        _refuse_negative(each, general)
    rewriting = Rewriting(changed(general.tape, change))
    for variable, text in general.constants.items():
        made = emitted(text, sizes, rewriting.tape.types[variable], rewriting.builder)
        rewriting.builder.names[made] = _hint(general, variable, text)
        rewriting.mapping[variable] = made
    for op in rewriting.tape.ops:
        rewriting.copy(op)
    return rewriting.finish()


def _refuse_negative(tape: Tape, general: General) -> None:
    used = {array for op in tape.ops for array, _ in index_arrays(tape, op)}
    for variable, own in zip(general.tape.constants, tape.constants, strict=True):
        value = np.asarray(tape.constants[own])
        if variable in general.constants and own in used and value.dtype.kind == "i" and value.size and value.min() < 0:
            raise ArgumentError(
                "an array of positions that depends on sizes counts from the end, which code in C and CUDA for all "
                "sizes does not have; write positions from the beginning, or generate for NumPy"
            )
