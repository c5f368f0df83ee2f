"""The NumPy call that stands for each primitive: as an expression, and written into a given array."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from yota.codegen.literals import dtype_text, shape_text, static_text, tuple_text
from yota.codegen.targets.call import Call, dtype_argument, infix, negated, owner
from yota.codegen.targets.numpy_choice import cuts_bits, cutting, room
from yota.codegen.targets.numpy_scatter import additions, assignment, deposits
from yota.codegen.targets.numpy_views import view
from yota.ir.calls import Form, Items, Place
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["REDUCTIONS", "column_sums", "expression", "has_out", "into", "is_count", "statements"]

_FEWEST_ROWS = 8
_LONGEST_ROW = 64
"""NumPy's sums of longer rows are pairwise, and more accurate than those of any BLAS."""
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
_EXACT_IN_PYTHON = frozenset("add subtract multiply less less_equal greater greater_equal equal not_equal".split())


def has_out(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether `into` can write the op's result straight into an array."""
    if not types[op.result].shape:
        return False
    # Two `copyto`, one with a mask, take up to three times as long as `where` and a new array (measured).
    if op.name == "where":
        return cuts_bits(op, types)
    if op.name == "imag":
        return False
    if isinstance(op.primitive.function, np.ufunc):
        return not op.static
    known = ("astype", "matmul", "einsum", "concatenate", "stack", "cumsum", "setitem", "scatter", "deposit")
    return op.name in known or op.name in REDUCTIONS


def into(call: Call, out: str, *, held: str | None = None) -> list[str]:
    """Statements that leave the result in the array ``out``.

    ``held`` is the text of the operand that ``out`` holds already, when an op works in place.
    """
    op, operands = call.op, call.operands
    if op.name == "astype":
        source = _real_part(call)
        return [f'np.copyto({out}, {source}, casting="unsafe")']
    if op.name == "setitem":
        first = [] if held == operands[0] else [f"np.copyto({out}, {operands[0]})"]
        return [*first, assignment(call, out)]
    if op.name == "where":
        return [cutting(call, out)]
    if op.name == "deposit":
        first = [] if held == operands[0] else [f"np.copyto({out}, {operands[0]})"]
        return [*first, *deposits(call, out)]
    if op.name == "scatter":
        lines, covered = additions(call, out)
        return lines if covered else [f"{out}.fill(0)", *lines]
    return [_append(expression(call, operator=False), f"out={out}")]


def expression(call: Call, *, operator: bool = True) -> str:
    """The result as an expression; of exactly the dtype and weakness that the tape says."""
    op, operands = call.op, call.operands
    if op.primitive.elementwise:
        return _elementwise(call, operator)
    if op.name in REDUCTIONS:
        return _reduction(call)
    if op.name == "matmul":
        if operator:
            return infix("@", *operands)
        return f"np.matmul({', '.join(operands)})"
    if op.name == "einsum":
        optimise = ", optimize=True" if len(operands) > 2 else ""
        return f'np.einsum("{op.keyword("subscripts")}", {", ".join(operands)}{optimise})'
    if op.name in ("concatenate", "stack"):
        return _joined(call)
    if op.name in ("getitem", "reshape", "broadcast_to", "transpose"):
        return view(call)
    if op.name == "item":
        return f"{owner(operands[0])}[{op.keyword('index')}]"
    if op.name == "strides":
        return f"np.array({owner(operands[0])}.strides)"
    if op.name == "call":
        return _recorded_call(call, op.keyword("form"))
    return _plain_call(call)


def statements(call: Call, name: str) -> list[str]:
    """Statements that bind ``name`` to the result in an array of its own (or a scalar)."""
    op = call.op
    if op.name == "setitem":
        return [f"{name} = np.array({call.operands[0]})", assignment(call, name)]
    if op.name == "call" and op.keyword("form").writes:
        form = op.keyword("form")
        return [
            f"{name} = np.array({call.operands[0]})",
            _recorded_call(replace(call, operands=(name, *call.operands[1:])), form),
        ]
    if op.name == "where" and call.cuts:
        return [f"{name} = {room(call)}", cutting(call, name)]
    if op.name == "deposit":
        return [f'{name} = np.array({call.operands[0]}, order="C")', *deposits(call, name)]
    if op.name == "scatter":
        lines, covered = additions(call, name)
        maker = "empty" if covered else "zeros"
        made = f"np.{maker}({shape_text(call.shape)}{dtype_argument(call.type)})"
        return [f"{name} = {made}", *lines]
    return [f"{name} = {expression(call)}"]


def _elementwise(call: Call, operator: bool) -> str:
    op, operands, type = call.op, call.operands, call.type
    if op.name in ("real", "imag"):
        return _part(call)
    if op.name == "astype":
        return _cast(call)
    if type.weak:
        # NumPy's loops take powers of their own; the value of Python numbers has those of the C library.
        if op.name in _EXACT_IN_PYTHON or (op.name == "power" and call.exact):
            return infix(_OPERATORS[op.name], *operands)
        if op.name == "negative":
            return negated(operands[0])
        kind = {"f": "float", "c": "complex", "b": "bool"}.get(type.dtype.kind, "int")
        return f"{kind}({_elementwise_call(call)})"
    if op.name == "where":
        return f"np.where({', '.join(operands)})" + ("" if type.shape else "[()]")
    # An array of no axes would come out of an operator as it does out of the function: as a scalar.
    if operator and op.name in _OPERATORS:
        return infix(_OPERATORS[op.name], *operands)
    if operator and op.name == "negative" and type.dtype.kind in "fc":
        return negated(operands[0])
    return _elementwise_call(call)


def _part(call: Call) -> str:
    """Real or imaginary part."""
    operand, name = call.operands[0], call.op.name
    if call.types[0].is_complex:
        return f"{owner(operand)}.{name}"
    if name == "real":
        return operand
    shape = shape_text(call.shape)
    return f"np.zeros({shape}{dtype_argument(call.type)})" if call.type.shape else f"{owner(operand)}.imag"


def _elementwise_call(call: Call) -> str:
    if call.op.name == "where":
        return f"np.where({', '.join(call.operands)})"
    return _plain_call(call)


def _cast(call: Call) -> str:
    kind = call.type.dtype.kind
    source = _real_part(call)
    if call.type.weak:
        return f"{ {'f': 'float', 'c': 'complex', 'b': 'bool'}.get(kind, 'int') }({source})"
    if not call.type.shape:
        return f"{dtype_text(call.type.dtype)}({source})"
    return f"{owner(source)}.astype({dtype_text(call.type.dtype)})"


def _real_part(call: Call) -> str:
    drop = call.types[0].is_complex and not call.type.is_complex
    return f"{owner(call.operands[0])}.real" if drop else call.operands[0]


def column_sums(call: Call, count: int, cut: str = "") -> str | None:
    """The sum over all axes but the last as a product by ones, which BLAS does 1.4 to 26 times faster (measured).

    ``count`` is the number of rows, and ``cut`` takes as many of the ones as there are in the last piece of a loop.
    None where that is not what the op does, or where rows do not lie side by side in memory.
    """
    op, type = call.op, call.types[0]
    whole = type.ndim > 1 and op.keyword("axis") == tuple(range(type.ndim - 1)) and not op.keyword("keepdims")
    if call.ones is None or not call.dense or op.name != "sum" or not whole or type.dtype.char not in "fd":
        return None
    if type.shape[-1] < 2 or count < _FEWEST_ROWS or call.type.dtype != type.dtype:
        return None
    rows = call.operands[0] if type.ndim == 2 else f"{owner(call.operands[0])}.reshape(-1, {type.shape[-1]})"
    return f"np.matmul({call.ones(count, type.dtype)}{cut}, {rows})"


def _reduction(call: Call) -> str:
    if is_count(call):
        return f"{dtype_text(call.type.dtype)}(np.count_nonzero({call.operands[0]}))"
    product = column_sums(call, math.prod(call.types[0].shape[:-1])) if call.types[0].ndim else None
    if product is not None:
        return product
    if _sums_short_rows(call):
        return _row_sums(call)
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


def _sums_short_rows(call: Call) -> bool:
    """Whether the op sums short rows, which a product by ones does 2 to 15 times faster (measured)."""
    op, type = call.op, call.types[0]
    if call.ones is None or op.name != "sum" or type.ndim < 2 or op.keyword("axis") != (type.ndim - 1,):
        return False
    if type.dtype.char not in "fd" or call.type.dtype != type.dtype or not 2 <= type.shape[-1] <= _LONGEST_ROW:
        return False
    return type.shape[-2] >= _FEWEST_ROWS * (1 if type.ndim == 2 else 8)


def _row_sums(call: Call) -> str:
    assert call.ones is not None
    ones = call.ones(call.types[0].shape[-1], call.types[0].dtype)
    return f"np.matmul({call.operands[0]}, {ones}{'[:, None]' if call.op.keyword('keepdims') else ''})"


def is_count(call: Call) -> bool:
    """Whether the op counts the true elements of a mask, which takes a tenth of the time of their sum (measured)."""
    one = call.op.name == "sum" and not call.type.shape
    return one and call.types[0].dtype.kind == "b" and call.type.dtype.kind == "f"


def _joined(call: Call) -> str:
    axis = call.op.keyword("axis")
    if call.op.name == "stack" and call.type.ndim == 1:
        return f"np.array([{', '.join(call.operands)}]{dtype_argument(call.type)})"
    return f"np.{call.op.name}({tuple_text(call.operands)}, axis={axis})"


def _recorded_call(call: Call, form: Form) -> str:
    """A call spelled as the user, or NumPy for him, made it."""
    arguments = [_argument(call, value) for value in form.arguments]
    arguments += [f"{name}={_argument(call, value)}" for name, value in form.keywords]
    module, _, rest = form.path.partition(".")
    if module != "numpy":
        call.import_module(form.path.rpartition(".")[0])
    text = f"{'np' if module == 'numpy' else module}.{rest}({', '.join(arguments)})"
    return text if form.part is None else f"{text}[{form.part}]"


def _argument(call: Call, value: Any) -> str:
    if isinstance(value, Place):
        return call.operands[value.operand]
    if isinstance(value, Items):
        texts = [_argument(call, item) for item in value.items]
        return tuple_text(texts) if value.kind is tuple else f"[{', '.join(texts)}]"
    return static_text(value) or call.name_object("argument", value)


def _plain_call(call: Call) -> str:
    op = call.op
    arguments = list(call.operands)
    optional = _optional(op.primitive.function)
    for name, value in op.static:
        if value is None and name in optional:
            continue
        text = static_text(value)
        arguments.append(f"{name}={call.name_object(name, value) if text is None else text}")
    return f"{_function(call)}({', '.join(arguments)})"


@functools.cache
def _optional(function: Any) -> frozenset[str]:
    """Keywords that a function takes for None where they are left out."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(name for name, each in parameters.items() if each.default is None)


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


def _append(text: str, argument: str) -> str:
    return f"{text[:-1]}, {argument})"
