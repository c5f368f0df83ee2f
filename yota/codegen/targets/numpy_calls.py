"""The NumPy call that stands for each primitive: as an expression, and written into a given array."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.codegen.literals import brackets, dtype_text, is_whole, shape_text, static_text, tuple_text
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["REDUCTIONS", "Call", "expression", "has_out", "into", "view"]

REDUCTIONS = {
    "sum": "np.add.reduce",
    "prod": "np.multiply.reduce",
    "max": "np.maximum.reduce",
    "min": "np.minimum.reduce",
}
_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "**",
    "matmul": "@",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
_EXACT_IN_PYTHON = frozenset(
    "add subtract multiply less less_equal greater greater_equal equal not_equal".split()
)


@dataclass(frozen=True, slots=True)
class Call:
    """One op ready to be spelled.

    Parameters
    ----------
    op
        The op.
    operands
        Text of each operand.
    types
        Type of each operand.
    type
        Type of the result.
    name_object
        Gives the name under which an object that has no literal is known to the generated code.
    import_module
        Notes that the generated code imports a module.
    rows
        In a loop over blocks: the blocked axis of the result and the text of its extent.
    """

    op: Op
    operands: tuple[str, ...]
    types: tuple[TensorType, ...]
    type: TensorType
    name_object: Callable[[str, Any], str]
    import_module: Callable[[str], None]
    rows: tuple[int, str] | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """Shape of the result, with the blocked extent as text."""
        shape: list[object] = list(self.type.shape)
        if self.rows is not None:
            shape[self.rows[0]] = self.rows[1]
        return tuple(shape)


def has_out(op: Op, types: Sequence[TensorType], type: TensorType) -> bool:
    """Whether `into` can write the op's result straight into an array."""
    if not type.shape:
        return False
    if op.name == "where":
        return types[0].dtype.kind == "b"
    if op.name == "imag":
        return False
    if isinstance(op.primitive.function, np.ufunc):
        return not op.static
    known = ("astype", "matmul", "einsum", "concatenate", "stack", "cumsum", "setitem", "scatter")
    return op.name in known or op.name in REDUCTIONS


def into(call: Call, out: str, *, held: str | None = None) -> list[str]:
    """Statements that leave the result in the array ``out``.

    ``held`` is the text of the operand that ``out`` holds already, when an op works in place.
    """
    op, operands = call.op, call.operands
    if op.name == "where":
        first = [] if held == operands[2] else [f"np.copyto({out}, {operands[2]})"]
        return [*first, f"np.copyto({out}, {operands[1]}, where={operands[0]})"]
    if op.name == "astype":
        source = _real_part(call)
        return [f'np.copyto({out}, {source}, casting="unsafe")']
    if op.name == "setitem":
        first = [] if held == operands[0] else [f"np.copyto({out}, {operands[0]})"]
        return [*first, _assignment(call, out)]
    if op.name == "scatter":
        lines, covered = _additions(call, out)
        return lines if covered else [f"{out}.fill(0)", *lines]
    return [_append(expression(call, operator=False), f"out={out}")]


def expression(call: Call, *, operator: bool = True) -> str:
    """The result as an expression; of exactly the dtype and weakness that the tape says."""
    op, operands = call.op, call.operands
    if op.primitive.elementwise:
        text = _elementwise(call, operator)
        return text
    if op.name in REDUCTIONS:
        return _reduction(call)
    if op.name == "matmul":
        if operator:
            return f"{_atom(operands[0])} @ {_atom(operands[1])}"
        return f"np.matmul({', '.join(operands)})"
    if op.name == "einsum":
        optimise = ", optimize=True" if len(operands) > 1 else ""
        return f'np.einsum("{op.keyword("subscripts")}", {", ".join(operands)}{optimise})'
    if op.name in ("concatenate", "stack"):
        return _joined(call)
    if op.name in ("getitem", "reshape", "broadcast_to", "transpose"):
        return view(call)
    return _plain_call(call)


def statements(call: Call, name: str) -> list[str]:
    """Statements that bind ``name`` to the result in an array of its own (or a scalar)."""
    op = call.op
    if op.name == "setitem":
        return [f"{name} = np.array({call.operands[0]})", _assignment(call, name)]
    if op.name == "scatter":
        lines, covered = _additions(call, name)
        maker = "empty" if covered else "zeros"
        made = f"np.{maker}({shape_text(call.shape)}{_dtype_argument(call.type)})"
        return [f"{name} = {made}", *lines]
    return [f"{name} = {expression(call)}"]


def view(call: Call) -> str:
    """Another look at the first operand."""
    op, source, type = call.op, call.operands[0], call.types[0]
    if op.name == "getitem":
        if type.weak:
            source = f"np.asarray({source})"
        return _owner(source) + brackets(op.keyword("index"), type.shape, call.operands[1:])
    if op.name == "transpose":
        axes = op.keyword("axes")
        if axes == (1, 0):
            return f"{_owner(source)}.T"
        return f"{_owner(source)}.transpose({', '.join(map(str, axes))})"
    if op.name == "broadcast_to":
        return f"np.broadcast_to({source}, {shape_text(call.shape)})"
    if op.name == "reshape":
        return _reshape(call)
    return f"{_owner(source)}.{op.name}"


def _reshape(call: Call) -> str:
    source, old, shape = call.operands[0], call.types[0], call.type.shape
    if not old.shape:
        return f"np.reshape({source}, {shape_text(shape)})" if shape else source
    marks = _unit_axes(old.shape, shape)
    if marks is not None:
        while marks and marks[-1] == ":":
            marks.pop()
        return f"{_owner(source)}[{', '.join(marks)}]" if marks else source
    return f"{_owner(source)}.reshape({', '.join(map(str, call.shape))})"


def _unit_axes(old: tuple[int, ...], shape: tuple[int, ...]) -> list[str] | None:
    """Index entries that only put in, or only take out, axes of extent 1."""
    longer, shorter, mark = (shape, old, "None") if len(shape) >= len(old) else (old, shape, "0")
    marks, position = [], 0
    for extent in longer:
        if position < len(shorter) and extent == shorter[position]:
            marks.append(":")
            position += 1
        elif extent == 1:
            marks.append(mark)
        else:
            return None
    return marks if position == len(shorter) else None


def _elementwise(call: Call, operator: bool) -> str:
    op, operands, type = call.op, call.operands, call.type
    if op.name in ("real", "imag"):
        if op.name == "real" or call.types[0].is_complex or not type.shape:
            return f"{_owner(operands[0])}.{op.name}" if call.types[0].is_complex or op.name == "imag" else operands[0]
        return f"np.zeros({shape_text(call.shape)}{_dtype_argument(type)})"
    if op.name == "astype":
        return _cast(call)
    if type.weak:
        if op.name in _EXACT_IN_PYTHON:
            return f"{_atom(operands[0])} {_OPERATORS[op.name]} {_atom(operands[1])}"
        if op.name == "negative":
            return f"-{_atom(operands[0])}"
        kind = {"f": "float", "c": "complex", "b": "bool"}.get(type.dtype.kind, "int")
        return f"{kind}({_elementwise_call(call)})"
    if op.name == "where":
        return f"np.where({', '.join(operands)})" + ("" if type.shape else "[()]")
    # An array of no axes would come out of an operator as it does out of the function: as a scalar.
    if operator and op.name in _OPERATORS:
        return f"{_atom(operands[0])} {_OPERATORS[op.name]} {_atom(operands[1])}"
    if operator and op.name == "negative" and type.dtype.kind in "fc":
        return f"-{_atom(operands[0])}"
    return _elementwise_call(call)


def _elementwise_call(call: Call) -> str:
    if call.op.name == "where":
        return f"np.where({', '.join(call.operands)})"
    return _plain_call(call)


def _cast(call: Call) -> str:
    kind = call.type.dtype.kind
    source = _real_part(call)
    if call.type.weak:
        return f"{ {'f': 'float', 'c': 'complex', 'b': 'bool'}.get(kind, 'int')}({source})"
    if not call.type.shape:
        return f"{dtype_text(call.type.dtype)}({source})"
    return f"{_owner(source)}.astype({dtype_text(call.type.dtype)})"


def _real_part(call: Call) -> str:
    drop = call.types[0].is_complex and not call.type.is_complex
    return f"{_owner(call.operands[0])}.real" if drop else call.operands[0]


def _reduction(call: Call) -> str:
    op, axis = call.op, call.op.keyword("axis")
    ndim = call.types[0].ndim
    parts = [call.operands[0]]
    if len(axis) == ndim and ndim != 1:
        parts.append("axis=None")
    elif axis != (0,):
        parts.append(f"axis={axis[0] if len(axis) == 1 else tuple_text(axis)}")
    if op.keyword("keepdims"):
        parts.append("keepdims=True")
    return f"{REDUCTIONS[op.name]}({', '.join(parts)})"


def _joined(call: Call) -> str:
    axis = call.op.keyword("axis")
    if call.op.name == "stack" and call.type.ndim == 1:
        return f"np.array([{', '.join(call.operands)}]{_dtype_argument(call.type)})"
    return f"np.{call.op.name}({tuple_text(call.operands)}, axis={axis})"


def _plain_call(call: Call) -> str:
    op = call.op
    arguments = list(call.operands)
    for name, value in op.static:
        text = static_text(value)
        arguments.append(f"{name}={call.name_object(name, value) if text is None else text}")
    return f"{_function(call)}({', '.join(arguments)})"


def _function(call: Call) -> str:
    primitive = call.op.primitive
    module, _, name = (primitive.target or "").rpartition(".")
    if module and name.isidentifier() and _resolves(module, name, primitive.function):
        if module == "numpy" or module.startswith("numpy."):
            return f"np{module[5:]}.{name}"
        call.import_module(module)
        return f"{module}.{name}"
    return call.name_object(primitive.name, primitive.function)


def _resolves(module: str, name: str, function: Any) -> bool:
    if module == "__main__":
        return False
    try:
        return getattr(importlib.import_module(module), name, None) is function
    except ImportError:
        return False


def _assignment(call: Call, out: str) -> str:
    index = call.op.keyword("index")
    place = brackets(index, call.type.shape, call.operands[2:])
    return f"{out}{place} = {call.operands[1]}"


def _additions(call: Call, out: str) -> tuple[list[str], bool]:
    """Statements that put the pieces in place, and whether they write every element.

    A piece that meets no earlier one is written, not added.
    """
    lines: list[str] = []
    boxes: list[tuple[range, ...]] = []
    written, plain = 0, True
    rest = iter(zip(call.operands, call.types, strict=True))
    for index in call.op.keyword("indices"):
        piece, type = next(rest)
        arrays = [next(rest) for entry in index if entry is GATHER]
        place = brackets(index, call.type.shape, [text for text, _ in arrays])
        if arrays:
            plain = False
            lines.append(_gathered_addition(call, out, index, place, arrays, (piece, type)))
            continue
        box = _box(index, call.type.shape)
        apart = plain and not any(_meet(box, other) for other in boxes)
        boxes.append(box)
        written += math.prod(map(len, box)) if apart else 0
        lines.append(f"{out}{place} {'=' if apart else '+='} {piece}")
    return lines, written == call.type.size


def _gathered_addition(
    call: Call,
    out: str,
    index: Index,
    place: str,
    arrays: Sequence[tuple[str, TensorType]],
    piece: tuple[str, TensorType],
) -> str:
    """Adds at places where some are repeated.

    ``np.add.at`` is fast for flat arrays alone (4 to 12 times faster, measured), so rows are spread to elements.
    """
    shape, count = call.type.shape, len(arrays)
    (text, type), (first, found) = piece, arrays[0]
    spread = np.broadcast_shapes(*(array.shape for _, array in arrays))
    leading = all(entry is GATHER for entry in index[:count])
    whole = all(is_whole(entry, extent) for entry, extent in zip(index[count:], shape[count:], strict=False))
    usual = leading and whole and len(index) == len(shape) and type.shape == spread + shape[count:]
    if not usual or not call.type.size or (len(shape) == 1 and len(spread) == 1):
        return f"np.add.at({out}, {_index_tuple(place)}, {text})"
    row = math.prod(shape[count:])
    if count == 1:
        flat = f"({first} % {shape[0]})"
    else:
        texts = tuple_text(text for text, _ in arrays)
        flat = f'np.ravel_multi_index({texts}, {tuple_text(shape[:count])}, mode="wrap")'
    if row > 1 or count < len(shape):
        wide = ".astype(np.int64)" if found.dtype.itemsize < 8 and count == 1 else ""
        flat = f"({flat}{wide}[..., None] * {row} + np.arange({row}))"
    target = f"{out}.reshape(-1)" if len(shape) > 1 else out
    index_text = f"{flat}.reshape(-1)" if len(spread) != 1 or count < len(shape) else flat
    return f"np.add.at({target}, {index_text}, {text}{'' if type.ndim == 1 else '.reshape(-1)'})"


def _box(index: Index, shape: tuple[int, ...]) -> tuple[range, ...]:
    """What an index covers along each axis."""
    entries = [entry for entry in index if entry is not NEWAXIS]
    return tuple(
        range(extent)[entry.start : entry.stop : entry.step]
        if isinstance(entry, Slice)
        else range(extent)[entry : entry + 1]
        for entry, extent in zip(entries, shape, strict=True)
    )


def _meet(box: tuple[range, ...], other: tuple[range, ...]) -> bool:
    return all(_overlap(one, two) for one, two in zip(box, other, strict=True))


def _overlap(one: range, two: range) -> bool:
    """Whether two ranges may share a number; interleaved ones of the same step do not."""
    if not one or not two:
        return False
    if one.step == two.step and (one.start - two.start) % one.step:
        return False
    return max(one[0], one[-1]) >= min(two[0], two[-1]) and max(two[0], two[-1]) >= min(one[0], one[-1])


def _index_tuple(place: str) -> str:
    inner = place[1:-1]
    if ":" in inner or "None" in inner:
        return f"np.s_[{inner}]"
    return f"({inner})" if "," in inner else inner


def _dtype_argument(type: TensorType) -> str:
    return "" if type.dtype == np.dtype(np.float64) else f", {dtype_text(type.dtype)}"


def _append(text: str, argument: str) -> str:
    return f"{text[:-1]}, {argument})"


def _atom(text: str) -> str:
    """``text`` in parentheses where an operator would bind it otherwise: operands are names, calls or literals."""
    return f"({text})" if text.startswith("-") else text


def _owner(text: str) -> str:
    """``text`` with parentheses where a dot or bracket cannot follow it as it is."""
    return f"({text})" if text[0] in "-.0123456789" else text
