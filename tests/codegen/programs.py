"""Tapes built by hand and at random, and their evaluation op by op: the oracle of the code generation tests."""

from __future__ import annotations

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
        variables = [
            operand if type(operand) is int else self.builder.constant(operand) for operand in operands
        ]
        return self.builder.emit(primitive(name), variables, static)

    def finish(self, *outputs: int) -> Tape:
        return self.builder.finish(outputs)


def evaluate(tape: Tape, *arguments: Any) -> list[Any]:
    """The outputs, by calling each primitive's own function on whole arrays."""
    values: dict[int, Any] = dict(tape.constants)
    values.update({item.variable: value for item, value in zip(tape.inputs, arguments, strict=True)})
    with np.errstate(all="ignore"):
        for op in tape.ops:
            result = op.primitive.function(*(values[v] for v in op.operands), **dict(op.static))
            type = tape.types[op.result]
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


def check(tape: Tape, results: Any, expected: list[Any], rtol: float | None = None) -> None:
    """Assert that results have the tape's types and the expected values."""
    results = results if len(tape.outputs) != 1 else (results,)
    assert len(results) == len(expected)
    for variable, found, wanted in zip(tape.outputs, results, expected, strict=True):
        type = tape.types[variable]
        assert type_of(found) == type, (type_of(found), type)
        if not type.shape:
            assert not isinstance(found, np.ndarray)
        single = any(other.dtype in (np.float32, np.complex64) for other in tape.types.values())
        tolerance = rtol or (5e-4 if single else 1e-11)
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0.0) if np.ndim(wanted) else 0.0
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale)


UNARY = ("negative", "sin", "tanh", "square", "absolute", "exp", "arctan")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "less")
REDUCTIONS = ("sum", "max", "min", "sum", "sum")


@st.composite
def tapes(draw: Any, shapes: tuple[tuple[int, ...], ...], dtype: str = "float64", length: int = 14) -> Tape:
    """A random tape over elementwise ops, reductions, views, joins and indexed sums."""
    write = Writer()
    types = write.builder.types
    complex_ = np.dtype(dtype).kind == "c"
    pool = [write.input(f"x{number}", shape, dtype) for number, shape in enumerate(shapes)]
    for _ in range(draw(st.integers(2, length))):
        kind = draw(st.sampled_from("unary binary binary binary reduce unit transpose slice scatter stack where cast set".split()))
        x = draw(st.sampled_from(pool[-6:] + pool[:2]))
        type = types[x]
        shape = type.shape
        if kind == "unary":
            choice = draw(st.sampled_from(UNARY if not complex_ else UNARY[:4] + ("conjugate", "real", "imag", "absolute")))
            if type.dtype.kind == "b":
                continue
            pool.append(write(choice, x))
        elif kind == "binary":
            fitting = [y for y in pool if _fit(types[y].shape, shape) and types[y].dtype.kind != "b"] + [0]
            y = draw(st.sampled_from(fitting))
            choice = draw(st.sampled_from(BINARY[:4] if complex_ else BINARY))
            if type.dtype.kind == "b":
                continue
            other = write.constant(draw(st.sampled_from([0.5, 2.0, -1.0, 3]))) if y == 0 else y
            pair = (x, other) if draw(st.booleans()) else (other, x)
            pool.append(write(choice, *pair))
        elif kind == "reduce" and shape and type.size:
            axes = tuple(axis for axis in range(len(shape)) if draw(st.booleans()))
            choice = "sum" if complex_ else draw(st.sampled_from(REDUCTIONS))
            pool.append(write(choice, x, axis=axes or (0,), keepdims=draw(st.booleans())))
        elif kind == "unit" and len(shape) < 3:
            axis = draw(st.integers(0, len(shape)))
            pool.append(write("reshape", x, shape=shape[:axis] + (1,) + shape[axis:]))
        elif kind == "transpose" and len(shape) > 1:
            pool.append(write("transpose", x, axes=tuple(draw(st.permutations(range(len(shape)))))))
        elif kind == "slice" and shape and type.size:
            axis = draw(st.integers(0, len(shape) - 1))
            index: list[Any] = [Slice(0, extent) for extent in shape]
            index[axis] = draw(st.sampled_from([0, Slice(0, shape[axis] // 2), Slice(0, shape[axis], 2), Slice(shape[axis] - 1, None, -1), Slice(1, shape[axis])]))
            if draw(st.booleans()):
                index.insert(axis, NEWAXIS)
            pool.append(write("getitem", x, index=tuple(index)))
        elif kind == "scatter" and shape and type.size and type.dtype.kind != "b":
            axis = draw(st.integers(0, len(shape) - 1))
            same = [y for y in pool if types[y].shape == shape and types[y].dtype == type.dtype]
            pieces = [x, *draw(st.lists(st.sampled_from(same), max_size=2))]
            longer = (*shape[:axis], shape[axis] + 2, *shape[axis + 1 :])
            indices = []
            for _ in pieces:
                shift = draw(st.integers(0, 2))
                index = [Slice(0, extent) for extent in shape]
                index[axis] = Slice(shift, shift + shape[axis])
                indices.append(tuple(index))
            pool.append(write("scatter", *pieces, shape=longer, indices=tuple(indices)))
        elif kind == "stack" and len(shape) < 3:
            same = [y for y in pool if types[y].shape == shape and types[y].dtype == type.dtype]
            pieces = [x, draw(st.sampled_from(same))]
            if shape and draw(st.booleans()):
                pool.append(write("concatenate", *pieces, axis=draw(st.integers(0, len(shape) - 1))))
            else:
                pool.append(write("stack", *pieces, axis=draw(st.integers(0, len(shape)))))
        elif kind == "where" and not complex_ and type.dtype.kind != "b":
            condition = write("greater", x, 0.25)
            same = [y for y in pool if types[y].shape == shape]
            pool.append(write("where", condition, x, draw(st.sampled_from(same))))
        elif kind == "cast" and not complex_:
            pool.append(write("astype", x, dtype=np.dtype(draw(st.sampled_from(["float32", "float64"])))))
        elif kind == "set" and shape and type.size and type.dtype.kind != "b":
            axis = draw(st.integers(0, len(shape) - 1))
            index = [Slice(0, extent) for extent in shape]
            index[axis] = Slice(0, 1)
            pool.append(write("setitem", x, draw(st.sampled_from([0.5, 2.0])), index=tuple(index)))
    kept = [pool[-1], *draw(st.lists(st.sampled_from(pool), max_size=3))]
    return write.finish(*kept)


def _fit(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    try:
        shape = np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return int(np.prod(shape)) <= 400_000
