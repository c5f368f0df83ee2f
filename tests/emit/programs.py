"""Tapes built by hand and at random, and their evaluation op by op: the oracle of the code generation tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from yota.ir.catalog import primitive
from yota.ir.indexing import NEWAXIS, Slice
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of


class Writer:
    """Writes a tape in a line for each op."""

    def __init__(self, name: str = "program") -> None:
        self.builder = TapeBuilder(name)

    def input(self, name: str, shape: tuple[int, ...], dtype: Any = float, weak: bool = False) -> int:
        argument = len(self.builder.inputs)
        return self.builder.input(TensorType(np.dtype(dtype), shape, weak), argument, name)

    def constant(self, value: Any) -> int:
        return self.builder.constant(value)

    def __call__(self, name: str, *operands: Any, **static: Any) -> int:
        if name in ("sum", "max", "min", "prod"):
            static.setdefault("axis", tuple(range(self.builder.types[operands[0]].ndim)))
            static.setdefault("keepdims", False)
        variables = [operand if type(operand) is int else self.builder.constant(operand) for operand in operands]
        return self.builder.emit(primitive(name), variables, static)

    def finish(self, *outputs: int) -> Tape:
        return self.builder.finish(outputs)


def evaluate(tape: Tape, *arguments: Any, noise: np.random.Generator | None = None) -> list[Any]:
    """The outputs, by calling each primitive's own function on whole arrays.

    ``noise`` disturbs each result in its last digits, to see which outputs rounding spoils.
    """
    values: dict[int, Any] = dict(tape.constants)
    values.update({item.variable: value for item, value in zip(tape.inputs, arguments, strict=True)})
    with np.errstate(all="ignore"):
        for op in tape.ops:
            result = op.primitive.function(*(values[v] for v in op.operands), **dict(op.static))
            type = tape.types[op.result]
            if noise is not None and type.dtype.kind in "fc":
                digits = 8 * np.finfo(type.dtype).eps * noise.standard_normal(type.shape)
                result = (result * (1 + digits)).astype(type.dtype)
            values[op.result] = type.dtype.type(result).item() if type.weak else result
    return [values[output] for output in tape.outputs]


def arguments(tape: Tape, seed: int = 0) -> list[Any]:
    """Random arguments of the tape's input types."""
    random = np.random.default_rng(seed)
    found: list[Any] = []
    for item in tape.inputs:
        type = tape.types[item.variable]
        value = random.uniform(0.25, 2.0, type.shape) * random.choice([-1.0, 1.0], type.shape)
        if type.dtype.kind == "c":
            value = value + 1j * random.uniform(-1.0, 1.0, type.shape)
        if type.dtype.kind == "b":
            value = np.asarray(value) > 0
        array = np.asarray(value).astype(type.dtype)
        found.append(array[()].item() if type.weak else array if type.shape else array[()])
    return found


def check(
    tape: Tape, results: Any, expected: list[Any], rtol: float | None = None, noisy: Sequence[list[Any]] = ()
) -> None:
    """Assert that results have the tape's types and the expected values.

    ``noisy`` are results of disturbed evaluations: what they do not agree on may come out otherwise too.
    """
    results = results if len(tape.outputs) != 1 else (results,)
    assert len(results) == len(expected)
    single = any(type.dtype in (np.float32, np.complex64) for type in tape.types.values())
    tolerance = rtol or (5e-4 if single else 1e-11)
    for number, (variable, found, wanted) in enumerate(zip(tape.outputs, results, expected, strict=True)):
        type = tape.types[variable]
        assert type_of(found) == type, (type_of(found), type)
        if not type.shape:
            assert not isinstance(found, np.ndarray)
        others = [np.asarray(other[number]) for other in noisy]
        steady = np.all([np.isfinite(other) == np.isfinite(wanted) for other in [wanted, *others]], axis=0)
        known = steady & np.isfinite(wanted)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted), where=known, initial=0.0)
            gaps = [np.abs(np.subtract(other, wanted, dtype=_wide(type))) for other in others]
            spoilt = [np.max(gap, where=known, initial=0.0) for gap in gaps]
        # A piece that is written rather than added keeps its negative zeros; what is divided by one shows it.
        found = np.where((np.isinf(found) & np.isinf(wanted)) | ~steady, wanted, found)
        slack = tolerance * scale + 20 * max(spoilt, default=0.0)
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=slack)


def _wide(type: TensorType) -> Any:
    """A dtype in which even booleans can be subtracted."""
    return np.result_type(type.dtype, np.float32)


UNARY = ("negative", "tanh", "square", "absolute", "arctan")
COMPLEX_UNARY = ("negative", "square", "conjugate", "real", "imag", "absolute")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "less")


class _Growth:
    """A random tape under construction: one method for each kind of op, which may also do nothing."""

    def __init__(self, draw: Any, shapes: tuple[tuple[int, ...], ...], dtype: str) -> None:
        self.draw, self.write = draw, Writer()
        self.types = self.write.builder.types
        self.is_complex = np.dtype(dtype).kind == "c"
        self.pool = [self.write.input(f"x{number}", shape, dtype) for number, shape in enumerate(shapes)]

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def like(self, x: int) -> list[int]:
        return [y for y in self.pool if self.types[y] == self.types[x]]

    def emit(self, *arguments: Any, **static: Any) -> None:
        self.pool.append(self.write(*arguments, **static))

    def unary(self, x: int, shape: tuple[int, ...]) -> None:
        self.emit(self.pick(*(COMPLEX_UNARY if self.is_complex else UNARY)), x)

    def binary(self, x: int, shape: tuple[int, ...]) -> None:
        fitting = [y for y in self.pool if _fit(self.types[y].shape, shape) and self.types[y].dtype.kind != "b"]
        y = self.pick(*fitting, 0) or self.write.constant(self.pick(0.5, 2.0, -1.0, 3))
        self.emit(self.pick(*(BINARY[:4] if self.is_complex else BINARY)), *((x, y) if self.pick(0, 1) else (y, x)))

    def reduce(self, x: int, shape: tuple[int, ...]) -> None:
        axes = tuple(axis for axis in range(len(shape)) if self.pick(True, False)) or (0,)
        choice = "sum" if self.is_complex else self.pick("sum", "sum", "max", "min")
        self.emit(choice, x, axis=axes, keepdims=self.pick(True, False))

    def unit(self, x: int, shape: tuple[int, ...]) -> None:
        axis = self.draw(st.integers(0, len(shape)))
        if len(shape) < 4:
            self.emit("reshape", x, shape=(*shape[:axis], 1, *shape[axis:]))

    def transpose(self, x: int, shape: tuple[int, ...]) -> None:
        self.emit("transpose", x, axes=tuple(self.draw(st.permutations(range(len(shape))))))

    def slice(self, x: int, shape: tuple[int, ...]) -> None:
        axis = self.pick(*range(len(shape)))
        n = shape[axis]
        cut = self.pick(0, Slice(0, n // 2), Slice(0, n, 2), Slice(n - 1, None, -1), Slice(1, n))
        index: list[Any] = _replaced(shape, axis, cut)
        if self.pick(True, False):
            index.insert(axis, NEWAXIS)
        self.emit("getitem", x, index=tuple(index))

    def scatter(self, x: int, shape: tuple[int, ...]) -> None:
        axis = self.pick(*range(len(shape)))
        pieces = [x, *self.draw(st.lists(st.sampled_from(self.like(x)), max_size=2))]
        longer = (*shape[:axis], shape[axis] + 2, *shape[axis + 1 :])
        shifts = [self.pick(0, 1, 2) for _ in pieces]
        indices = tuple(tuple(_replaced(shape, axis, Slice(s, s + shape[axis]))) for s in shifts)
        self.emit("scatter", *pieces, shape=longer, indices=indices)

    def stack(self, x: int, shape: tuple[int, ...]) -> None:
        pieces = (x, self.pick(*self.like(x)))
        if self.pick(True, False):
            self.emit("concatenate", *pieces, axis=self.pick(*range(len(shape))))
        elif len(shape) < 3:
            self.emit("stack", *pieces, axis=self.draw(st.integers(0, len(shape))))

    def where(self, x: int, shape: tuple[int, ...]) -> None:
        if not self.is_complex:
            same = [y for y in self.pool if self.types[y].shape == shape]
            self.emit("where", self.write("greater", x, 0.25), x, self.pick(*same))

    def cast(self, x: int, shape: tuple[int, ...]) -> None:
        if not self.is_complex:
            self.emit("astype", x, dtype=np.dtype(self.pick("float32", "float64")))

    def set(self, x: int, shape: tuple[int, ...]) -> None:
        index = _replaced(shape, self.pick(*range(len(shape))), Slice(0, 1))
        self.emit("setitem", x, self.pick(0.5, 2.0), index=tuple(index))


KINDS = ("unary", "binary", "binary", "binary", "reduce", "unit", "transpose", "slice", "scatter", "stack", "where")


@st.composite
def tapes(draw: Any, shapes: tuple[tuple[int, ...], ...], dtype: str = "float64", length: int = 14) -> Tape:
    """A random tape over elementwise ops, reductions, views, joins and indexed sums."""
    growth = _Growth(draw, shapes, dtype)
    for _ in range(draw(st.integers(2, length))):
        kind = growth.pick(*KINDS, "cast", "set")
        x = growth.pick(*growth.pool[-6:], *growth.pool[:2])
        type = growth.types[x]
        scalars = kind in ("unary", "binary", "unit", "where", "cast")
        if type.dtype.kind != "b" and (scalars or (type.shape and type.size)):
            getattr(growth, kind)(x, type.shape)
    return growth.write.finish(growth.pool[-1], *draw(st.lists(st.sampled_from(growth.pool), max_size=3)))


def _replaced(shape: tuple[int, ...], axis: int, entry: Any) -> list[Any]:
    """An index that takes everything, but for ``entry`` on ``axis``."""
    index: list[Any] = [Slice(0, extent) for extent in shape]
    index[axis] = entry
    return index


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        shape = np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return len(shape) < 5 and int(np.prod(shape)) <= 400_000
