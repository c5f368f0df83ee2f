"""The NumPy call that stands for each primitive: as an expression, and written into a given array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from yota.codegen.literals import dtype_text, shape_text, tuple_text
from yota.codegen.targets.call import OPERATORS, Call, dtype_argument, infix, negated, owner
from yota.codegen.targets.numpy_choice import cuts_bits, cutting, room
from yota.codegen.targets.numpy_functions import plain_call, recorded_call
from yota.codegen.targets.numpy_reductions import REDUCTIONS, reduction
from yota.codegen.targets.numpy_scatter import additions, assignment, deposits
from yota.codegen.targets.numpy_views import view
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["expression", "has_out", "into", "statements"]

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
        return reduction(call)
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
        return recorded_call(call, op.keyword("form"))
    return plain_call(call)


def statements(call: Call, name: str) -> list[str]:
    """Statements that bind ``name`` to the result in an array of its own (or a scalar)."""
    op = call.op
    if op.name == "setitem":
        return [f"{name} = np.array({call.operands[0]})", assignment(call, name)]
    if op.name == "call" and op.keyword("form").writes:
        form = op.keyword("form")
        return [
            f"{name} = np.array({call.operands[0]})",
            recorded_call(replace(call, operands=(name, *call.operands[1:])), form),
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
            return infix(OPERATORS[op.name], *operands)
        if op.name == "negative":
            return negated(operands[0])
        kind = {"f": "float", "c": "complex", "b": "bool"}.get(type.dtype.kind, "int")
        return f"{kind}({_elementwise_call(call)})"
    if op.name == "where":
        return f"np.where({', '.join(operands)})" + ("" if type.shape else "[()]")
    # An array of no axes would come out of an operator as it does out of the function: as a scalar.
    if operator and op.name in OPERATORS:
        return infix(OPERATORS[op.name], *operands)
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
    return plain_call(call)


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


def _joined(call: Call) -> str:
    axis = call.op.keyword("axis")
    if call.op.name == "stack" and call.type.ndim == 1:
        return f"np.array([{', '.join(call.operands)}]{dtype_argument(call.type)})"
    return f"np.{call.op.name}({tuple_text(call.operands)}, axis={axis})"


def _append(text: str, argument: str) -> str:
    return f"{text[:-1]}, {argument})"
