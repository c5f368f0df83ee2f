"""The NumPy call that stands for each primitive: as an expression, and written into a given array."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from yota.emit.numpy_literals import dtype_argument, dtype_text, shape_text, static_text, tuple_text
from yota.emit.python.numpy_arrays import cuts_bits, cutting, reduction, room, view
from yota.emit.python.numpy_scatter import additions, assignment, deposits
from yota.emit.python.op_call import OPERATORS, Call, infix, negated, owner
from yota.ir.calls import Form, Items, Place
from yota.ir.semantics import CONTRACTIONS, INDEXED, JOINS, VIEWS, AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType


def recorded_call(call: Call, form: Form) -> str:
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


def plain_call(call: Call) -> str:
    """The call of the op's function on its operands."""
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


_HAVE_OUT = (CONTRACTIONS | JOINS | INDEXED | {AccessMap.REDUCTION, AccessMap.SCAN}) - {AccessMap.READ}


def has_out(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether `into` can write the op's result straight into an array."""
    if not types[op.result].shape:
        return False
    # Two `copyto`, one with a mask, take up to three times as long as `where` and a new array (measured).
    if op.semantics.chooses:
        return cuts_bits(op, types)
    if op.semantics.ufunc:
        return not op.static
    return op.semantics.casts or op.access in _HAVE_OUT


def into(call: Call, out: str, *, held: str | None = None) -> list[str]:
    """Statements that leave the result in the array ``out``; an op in place reads ``out`` as its operand ``held``."""
    if call.op.semantics.casts:
        return [f'np.copyto({out}, {_real_part(call)}, casting="unsafe")']
    if call.op.semantics.chooses:
        return [cutting(call, out)]
    start, lines = _filling(call, out)
    if not start:
        return [f"{expression(call, operator=False)[:-1]}, out={out})"]
    if start == "copy":
        return lines if held == call.operands[0] else [f"np.copyto({out}, {call.operands[0]})", *lines]
    return [f"{out}.fill(0)", *lines] if start == "zeros" else lines


def expression(call: Call, *, operator: bool = True) -> str:
    """The result as an expression; of exactly the dtype and weakness that the tape says."""
    op = call.op
    if op.primitive.elementwise:
        return _elementwise(call, operator)
    if operator and op.access == AccessMap.MATMUL:
        return infix("@", *call.operands)
    return _EXPRESSIONS.get(op.access, plain_call)(call)


def statements(call: Call, name: str) -> list[str]:
    """Statements that bind ``name`` to the result in an array of its own (or a scalar)."""
    op = call.op
    if op.access == AccessMap.CALL and op.keyword("form").writes:
        form = op.keyword("form")
        return [
            f"{name} = np.array({call.operands[0]})",
            recorded_call(replace(call, operands=(name, *call.operands[1:])), form),
        ]
    if op.semantics.chooses and call.cuts:
        return [f"{name} = {room(call)}", cutting(call, name)]
    start, lines = _filling(call, name)
    if not start:
        return [f"{name} = {expression(call)}"]
    if start == "copy":
        order = ', order="C"' if op.access == AccessMap.DEPOSIT else ""
        return [f"{name} = np.array({call.operands[0]}{order})", *lines]
    return [f"{name} = np.{start}({shape_text(call.shape)}{dtype_argument(call.type.dtype)})", *lines]


def _filling(call: Call, out: str) -> tuple[str, list[str]]:
    """What ``out`` must be at first, and the statements that write the op's pieces there; none for other ops."""
    access = call.op.access
    if access == AccessMap.WRITE:
        return "copy", [assignment(call, out)]
    if access == AccessMap.DEPOSIT:
        return "copy", deposits(call, out)
    if access == AccessMap.SCATTER:
        lines, covered = additions(call, out)
        return "empty" if covered else "zeros", lines
    return "", []


def _einsum(call: Call) -> str:
    optimise = ", optimize=True" if len(call.operands) > 2 else ""
    return f'np.einsum("{call.op.keyword("subscripts")}", {", ".join(call.operands)}{optimise})'


def _elementwise(call: Call, operator: bool) -> str:
    op, operands, type = call.op, call.operands, call.type
    if op.semantics.component:
        return _part(call)
    if op.semantics.casts:
        source = _real_part(call)
        if call.type.weak:
            return f"{python_type(call.type)}({source})"
        if not call.type.shape:
            return f"{dtype_text(call.type.dtype)}({source})"
        return f"{owner(source)}.astype({dtype_text(call.type.dtype)})"
    sign = OPERATORS.get(op.name)
    if type.weak:
        # NumPy's loops take powers of their own; the value of Python numbers has those of the C library.
        if op.semantics.exact or (sign == "**" and call.exact):
            return infix(sign, *operands) if sign else negated(operands[0])
        return f"{python_type(type)}({_elementwise_call(call)})"
    # An array of no axes would come out of an operator as it does out of the function: as a scalar.
    if operator and sign:
        return infix(sign, *operands)
    if operator and op.semantics.exact and type.dtype.kind in "fc":
        return negated(operands[0])
    return _elementwise_call(call) + ("[()]" if op.semantics.chooses and not type.shape else "")


def _part(call: Call) -> str:
    operand, name = call.operands[0], call.op.semantics.component
    if call.types[0].is_complex:
        return f"{owner(operand)}.{name}"
    if name == "real":
        return operand
    shape = shape_text(call.shape)
    return f"np.zeros({shape}{dtype_argument(call.type.dtype)})" if call.type.shape else f"{owner(operand)}.imag"


def _elementwise_call(call: Call) -> str:
    if call.op.semantics.chooses:
        return f"np.where({', '.join(call.operands)})"
    return plain_call(call)


def _real_part(call: Call) -> str:
    drop = call.types[0].is_complex and not call.type.is_complex
    return f"{owner(call.operands[0])}.real" if drop else call.operands[0]


def _joined(call: Call) -> str:
    axis = call.op.keyword("axis")
    if call.op.access == AccessMap.STACK and call.type.ndim == 1:
        return f"np.array([{', '.join(call.operands)}]{dtype_argument(call.type.dtype)})"
    return f"np.{call.op.name}({tuple_text(call.operands)}, axis={axis})"


def python_type(type: TensorType) -> str:
    """Name of the Python type of a weak number."""
    return {"f": "float", "c": "complex", "b": "bool"}.get(type.dtype.kind, "int")


_EXPRESSIONS: dict[str, Callable[[Call], str]] = {
    **dict.fromkeys(VIEWS | {AccessMap.READ}, view),
    **dict.fromkeys(JOINS, _joined),
    AccessMap.REDUCTION: reduction,
    AccessMap.EINSUM: _einsum,
    AccessMap.ITEM: lambda call: f"{owner(call.operands[0])}[{call.op.keyword('index')}]",
    AccessMap.LAYOUT: lambda call: f"np.array({owner(call.operands[0])}.strides)",
    AccessMap.CALL: lambda call: recorded_call(call, call.op.keyword("form")),
}
