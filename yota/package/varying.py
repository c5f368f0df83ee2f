"""Constants of modules: arrays as text, each written once, and those that depend on sizes as arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.numpy_literals import UNNAMED, by_rows, dtype_argument, dtype_text, scalar
from yota.errors import CodegenError
from yota.ir.catalog import primitive
from yota.ir.extents import Extent, extent_of
from yota.ir.indexing import POSITIONS
from yota.ir.regions import changed
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize import dce
from yota.optimize.rewrite import Rewriting, reached
from yota.schedule.nests.index_patterns import index_arrays
from yota.tracing.replay import evaluate
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.generalise import General, at_size
from yota.transform.sizes.size_expressions import Samples
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

    values: the constant at each of the sizes at which the function was traced.
    """

    hint: str
    text: str
    values: tuple[Any, ...] = ()


def separated(general: General, change: Callable[[Extent], int]) -> tuple[Tape, tuple[Varying, ...]]:
    """The tape for all sizes, ``change`` applied to its extents, and the constants that are its last inputs."""
    own = general.cases
    numbers = {variable: place for place, variable in enumerate(general.tape.constants)}
    found: dict[tuple[str, TensorType], list[int]] = {}
    for variable, text in general.constants.items():
        found.setdefault((text, own[0].types[variable]), []).append(variable)
    rewriting = Rewriting(changed(general.tape, change))
    builder, tape, varying = rewriting.builder, rewriting.tape, []
    for (text, type), (first, *others) in found.items():
        hint = tape.names.get(first) or (name_of_form(text) if type.shape else "scale")
        values = tuple(list(each.constants.values())[numbers[first]] for each in own)
        varying.append(Varying(hint, text, values))
        made = builder.input(tape.types[first], len(builder.inputs), hint)
        rewriting.mapping |= dict.fromkeys((first, *others), made)
    for op in tape.ops:
        rewriting.copy(op)
    return rewriting.finish(), tuple(varying)


def computed(tape: Tape, varying: Sequence[Varying], spelled: Samples, samples: Samples) -> Tape:
    """The tape for all sizes, which are ``spelled`` in another way, with ops that compute its last inputs, ``varying``.

    Index arrays that count from the end at some of the ``samples`` count from the start.
    """
    count = len(tape.inputs) - len(varying)
    own = {entry.variable: each for entry, each in zip(tape.inputs[count:], varying, strict=True)}
    negative = _negative(tape, own, samples)
    tape = changed(tape, lambda extent: extent_of(extent.values, spelled))
    sizes = {name: extent_of([size[name] for size in spelled.sizes], spelled) for name in spelled.names}
    rewriting = Rewriting(replace(tape, inputs=tape.inputs[:count]))
    builder = rewriting.builder
    for variable, each in own.items():
        rewriting.mapping[variable] = made = emitted(each.text, sizes, tape.types[variable], builder)
        builder.names[made] = each.hint
    for op in tape.ops:
        known = {}
        for array, extent in index_arrays(tape, op):
            if array in negative:
                known[array] = rewriting[array]
                length = builder.emit(POSITIONS, (), {"shape": (), "start": extent, "steps": ()})
                rewriting.mapping[array] = builder.emit(primitive("remainder"), (known[array], length))
        rewriting.copy(op)
        rewriting.mapping |= known
    return rewriting.finish()


def _negative(tape: Tape, varying: Mapping[int, Varying], samples: Samples) -> set[int]:
    """Index arrays that come from sizes and are negative somewhere."""
    others = [entry.variable for entry in tape.inputs if entry.variable not in varying]
    arrays = {array for op in tape.ops for array, _ in index_arrays(tape, op)}
    wanted = sorted(arrays & reached(tape, varying) - reached(tape, others))
    part = dce.run(replace(tape, outputs=tuple(wanted), guards=()))
    found = set()
    for number, size in enumerate(samples.sizes):
        values = evaluate(at_size(part, size), {each: made.values[number] for each, made in varying.items()})
        found |= {each for each, value in zip(wanted, values, strict=True) if np.min(value, initial=0) < 0}
    return found
