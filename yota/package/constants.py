"""Constants of a standalone module: arrays as text, each written once."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.numpy_literals import UNNAMED, dtype_text, scalar
from yota.emit.python.op_call import dtype_argument
from yota.errors import CodegenError
from yota.ir.types import type_of
from yota.transform.sizes.evaluation import evaluated

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
        """Name of an array.

        Raises CodegenError if it is too large to be written out, or holds something else than numbers.
        """
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
        flat = np.ascontiguousarray(value).ravel()
        if value.dtype.kind == "c":
            flat = flat.view(np.dtype(f"f{value.dtype.itemsize // 2}"))
        if value.dtype.kind == "b":
            flat = flat.view(np.int8)
        words = " ".join(str(item) for item in flat.tolist())
        rows = textwrap.wrap(words, _COLUMNS, break_long_words=False, break_on_hyphens=False)
        key = f"{words} {value.dtype} {value.shape}"
        if key not in self._known:
            table, name = self._fresh(f"{hint}_text"), self._fresh(hint)
            made = f"np.array({table}.split(), {dtype_text(flat.dtype)})"
            made += f".view({dtype_text(value.dtype)})" if flat.dtype != value.dtype else ""
            made += f".reshape({', '.join(map(str, value.shape))})" if value.ndim != 1 else ""
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
    dtype = dtype_argument(type_of(value))
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
