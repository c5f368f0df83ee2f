"""Numbers and arrays that come from sizes as ops of a tape: their Python text, evaluated on a builder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import POSITIONS
from yota.ir.primitive import BINARY
from yota.ir.tape import TapeBuilder
from yota.ir.types import TensorType
from yota.transform.sizes.evaluation import evaluated


def emitted(text: str, sizes: Mapping[str, int], type: TensorType, builder: TapeBuilder) -> int:
    """The variable of what ``text`` makes of ``sizes``, as a value of ``type``."""
    names = _Namespace(builder)
    known = {name: names.of(size) for name, size in sizes.items()}
    found = names.of(evaluated(text, {**known, "np": names, "math": names, "float": names.real})).variable
    if builder.types[found].dtype != type.dtype:
        found = builder.emit(primitive("astype"), (found,), {"dtype": type.dtype}, type)
    if found not in builder.constants:
        builder.types[found] = type
    return found


@dataclass(frozen=True, slots=True)
class _Affine:
    """Whole numbers: ``start``, plus the index along each axis times its step."""

    start: int
    shape: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()

    def scaled(self, factor: int) -> _Affine:
        return _Affine(self.start * factor, self.shape, tuple(step * factor for step in self.steps))

    def plus(self, other: _Affine) -> _Affine:
        axes = [each._axes(max(len(self.shape), len(other.shape))) for each in (self, other)]
        pairs = list(zip(*axes, strict=True))
        shape = tuple(two if one == 1 else one for (one, _), (two, _) in pairs)
        return _Affine(self.start + other.start, shape, tuple(one + two for (_, one), (_, two) in pairs))

    def _axes(self, ndim: int) -> list[tuple[int, int]]:
        """Extent and step along each axis of an array of ``ndim`` axes."""
        axes = zip(self.shape, self.steps, strict=True)
        return [(1, 0)] * (ndim - len(self.shape)) + [(extent, 0 if extent == 1 else step) for extent, step in axes]

    def combined(self, name: str, other: _Affine) -> _Affine | None:
        """The result of an op, if it is affine."""
        if name == "add":
            return self.plus(other)
        if name == "subtract":
            return self.plus(other.scaled(-1))
        if name == "multiply" and not (self.shape and other.shape):
            return self.scaled(other.start) if not other.shape else other.scaled(self.start)
        if name in ("floor_divide", "remainder") and not (self.shape or other.shape):
            return _Affine(BINARY[name].function(self.start, other.start))
        return None


def _method(name: str, *, swapped: bool = False) -> Callable[[_Value, Any], _Value]:
    def compute(self: _Value, other: Any) -> _Value:
        return self.names.of(other).applied(name, self) if swapped else self.applied(name, other)

    return compute


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A number or an array: an affine function of its indices, a Python number, or a variable."""

    names: _Namespace
    affine: _Affine | None
    number: Any = None
    made: int = 0

    @property
    def variable(self) -> int:
        """Its variable on the tape."""
        builder, form = self.names.builder, self.affine
        if form is not None and not form.shape and type(form.start) is int:
            return builder.constant(form.start)
        if form is not None:
            return builder.emit(POSITIONS, (), {"shape": form.shape, "start": form.start, "steps": form.steps})
        return self.made if self.number is None else builder.constant(self.number)

    def applied(self, name: str, *others: Any, **static: Any) -> _Value:
        """The result of a primitive, of which it is the first operand."""
        names = self.names
        given = [self, *map(names.of, others)]
        if len(given) == 2 and given[0].affine is not None and given[1].affine is not None:
            found = given[0].affine.combined(name, given[1].affine)
            if found is not None:
                return _Value(names, found)
        return names.made(name, [each.variable for each in given], **static)

    __add__, __radd__ = _method("add"), _method("add", swapped=True)
    __sub__, __rsub__ = _method("subtract"), _method("subtract", swapped=True)
    __mul__, __rmul__ = _method("multiply"), _method("multiply", swapped=True)
    __truediv__, __rtruediv__ = _method("divide"), _method("divide", swapped=True)
    __floordiv__, __mod__ = _method("floor_divide"), _method("remainder")

    def __eq__(self, other: object) -> Any:
        return self.applied("equal", other)

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> _Value:
        return self * -1 if self.affine is not None else self.applied("negative")

    def __pow__(self, count: int) -> _Value:
        return math.prod([self] * count, start=self.names.of(1))

    def __getitem__(self, index: Any) -> _Value:
        extents = iter(self.names.builder.types[self.variable].shape)
        entries = index if isinstance(index, tuple) else (index,)
        return self.reshape(*(1 if entry is None else next(extents) for entry in entries), *extents)

    def reshape(self, *shape: Any) -> _Value:
        """Its elements in another shape."""
        extents = self.names.shape(shape)
        form = self.affine
        if form is not None and len(form.shape) == 1:
            lengths = [math.prod(extents[axis + 1 :]) for axis in range(len(extents))]
            return _Value(self.names, _Affine(form.start, extents, tuple(form.steps[0] * each for each in lengths)))
        return self.applied("reshape", shape=extents)

    def astype(self, cast: _Cast) -> _Value:
        """Its elements in another dtype."""
        return cast(self)


@dataclass(frozen=True, slots=True)
class _Cast:
    """A dtype, by which NumPy's numbers are made too."""

    names: _Namespace
    dtype: np.dtype[Any]

    def __call__(self, value: Any) -> _Value:
        found = self.names.of(value)
        if found.affine is not None and self.dtype == np.int64:
            return found
        return found.applied("astype", dtype=self.dtype)


class _Namespace:
    """What the texts call: NumPy's functions, on values of a tape."""

    def __init__(self, builder: TapeBuilder) -> None:
        self.builder = builder
        self.fft = self

    def __getattr__(self, name: str) -> _Cast:
        return _Cast(self, np.dtype(getattr(np, name)))

    def of(self, value: Any) -> _Value:
        """A value, of a Python number too."""
        if isinstance(value, _Value):
            return value
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _Value(self, _Affine(value) if whole else None, value)

    def made(self, name: str, operands: Sequence[int], **static: Any) -> _Value:
        """The result of a primitive."""
        return _Value(self, None, None, self.builder.emit(primitive(name), operands, static))

    def shape(self, extents: Sequence[Any]) -> tuple[int, ...]:
        """Extents, which are whole numbers."""
        found = []
        for each in extents:
            form = self.of(each).affine
            assert form is not None
            found.append(form.start)
        return tuple(found)

    def real(self, value: Any) -> _Value:
        """A float."""
        return self.float64(value)

    def sqrt(self, value: Any) -> _Value:
        return self.real(value).applied("sqrt")

    def log(self, value: Any) -> _Value:
        return self.real(value).applied("log")

    def divide(self, one: Any, other: Any) -> _Value:
        return self.of(one).applied("divide", other)

    def where(self, condition: _Value, one: Any, other: Any) -> _Value:
        return condition.applied("where", one, other)

    def full(self, shape: Sequence[Any], value: Any, cast: _Cast) -> _Value:
        return self.broadcast_to(cast(value), shape)

    def broadcast_to(self, value: Any, shape: Sequence[Any]) -> _Value:
        found, extents = self.of(value), self.shape(shape)
        if found.affine is not None:
            return _Value(self, found.affine.plus(_Affine(0, extents, (0,) * len(extents))))
        return found.applied("broadcast_to", shape=extents)

    def arange(self, *ends: Any, dtype: _Cast | None = None) -> _Value:
        start, stop = ends if len(ends) > 1 else (0, ends[0])
        (count,) = self.shape([stop - self.of(start)])
        found = _Value(self, _Affine(0, (count,), (1,))) + start
        return found if dtype is None else dtype(found)

    def linspace(self, start: Any, stop: Any, count: Any, dtype: _Cast | None = None) -> _Value:
        """Numbers at equal distances; the last one is exact, as in NumPy."""
        at, last = self.arange(count), self.of(count) - 1
        inner = self.where(at == last, stop, at * ((stop - self.real(start)) / last) + start)
        found = self.where(at == 0, start, inner)
        return found if dtype is None else dtype(found)

    def eye(self, rows: Any, columns: Any = None, k: int = 0) -> _Value:
        return self.real(self._row(rows, k) == self._column(rows if columns is None else columns))

    def tri(self, rows: Any, columns: Any = None, k: int = 0) -> _Value:
        found = self._column(rows if columns is None else columns).applied("less_equal", self._row(rows, k))
        return self.real(found)

    def _row(self, count: Any, k: int) -> _Value:
        return (self.arange(count) + k)[:, None]

    def _column(self, count: Any) -> _Value:
        return self.arange(count)[None]

    def tril_indices(self, size: _Value, k: int) -> tuple[_Value, _Value]:
        """Rows and columns of the elements up to a diagonal."""
        return self._triangle(self.arange(self._elements(size, k)), size, k)

    def triu_indices(self, size: _Value, k: int) -> tuple[_Value, _Value]:
        """Rows and columns of the elements from a diagonal on: those up to it, counted from the end."""
        count = self._elements(size, -k)
        row, column = self._triangle(count - 1 - self.arange(count), size, -k)
        return size - 1 - row, size - 1 - column

    def _elements(self, size: _Value, k: int) -> _Value:
        """How many elements a triangle has."""
        if k > 0:
            return size * (size + 1) // 2 - k * (k + 1) // 2 + k * size
        return (size + k) * (size + k + 1) // 2

    def _triangle(self, at: _Value, size: _Value, k: int) -> tuple[_Value, _Value]:
        """Rows and columns of elements by their numbers: row ``r`` begins at number ``r * (r + 1) / 2``."""
        at = at + max(k, 0) * (k + 1) // 2
        place = self.real(at)
        row = ((8.0 * place + 1.0).applied("sqrt") * 0.5 - 0.5).astype(self.int64)
        above = self.real(row)
        column = (place - above * (above + 1.0) * 0.5).astype(self.int64)
        if k <= 0:
            return row + -k, column
        # The last rows are as long as the matrix.
        whole = size * (size + 1) // 2
        is_short, rest = at.applied("less", whole), at - whole
        return self.where(is_short, row, rest // size + size) + -k, self.where(is_short, column, rest % size)

    def _cosine(self, size: _Value, times: int = 1) -> _Value:
        """The cosine of an angle from minus to plus ``times`` pi."""
        return (self._odd(size) * (math.pi * times) / (size - 1)).applied("cos")

    def _odd(self, size: _Value) -> _Value:
        return 2 * self.arange(size) + (1 - size)

    def hanning(self, size: _Value) -> _Value:
        return self.where(size == 1, 1.0, 0.5 + 0.5 * self._cosine(size))

    def hamming(self, size: _Value) -> _Value:
        return self.where(size == 1, 1.0, 0.54 + 0.46 * self._cosine(size))

    def blackman(self, size: _Value) -> _Value:
        return self.where(size == 1, 1.0, 0.42 + 0.5 * self._cosine(size) + 0.08 * self._cosine(size, 2))

    def bartlett(self, size: _Value) -> _Value:
        return self.where(size == 1, 1.0, 1.0 - (self._odd(size) / (size - 1)).applied("absolute"))

    def fftfreq(self, size: _Value) -> _Value:
        at = self.arange(size)
        return self.where((2 * at).applied("less", size), at, at - size) * (1.0 / size)

    def rfftfreq(self, size: _Value) -> _Value:
        return self.arange(size // 2 + 1) * (1.0 / size)
