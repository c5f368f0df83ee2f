"""The CuPy call that stands for each primitive that no kernel computes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from yota.codegen.cuda.library import has
from yota.codegen.literals import dtype_text, tuple_text
from yota.codegen.targets import numpy_calls
from yota.codegen.targets.call import Call
from yota.errors import CodegenError
from yota.ir.location import where
from yota.ir.semantics import AccessMap
from yota.ir.types import TensorType

__all__ = ["statements"]

_FORMS = {
    "numpy.linalg.svdvals": "np.linalg.svd({0}, compute_uv=False)",
    # CuPy raises nothing for a singular matrix, and its SVD takes no stacks of matrices.
    "yota.ir.factors.cofactors": "np.linalg.det({0})[..., None, None] * np.swapaxes(np.linalg.inv({0}), -1, -2)",
}
"""Functions that CuPy has by another name, or that take several of its."""


def statements(call: Call, name: str, pointers: Collection[int]) -> list[str]:
    """Statements that bind ``name`` to the result.

    Parameters
    ----------
    pointers
        Variables without axes that are arrays on the device, rather than Python numbers.

    Raises
    ------
    CodegenError
        If CuPy has no such function.
    """
    op = call.op
    _check(call)
    # A value that Python would hold stays on the device, in an array without axes.
    weak = [number for number, type in enumerate(call.types) if type.weak]
    call = replace(call, type=_strong(call.type))
    if op.access == AccessMap.REDUCTION:
        lines = [f"{name} = {_reduction(call)}"]
    elif op.semantics.casts:
        lines = [f"{name} = {_array(call, 0)}.astype({dtype_text(call.type.dtype)})"]
    elif op.primitive.target in _FORMS:
        lines = [f"{name} = {_FORMS[op.primitive.target].format(call.operands[0])}"]
    elif op.semantics.chooses:
        lines = [f"{name} = np.where({', '.join(call.operands)})"]
    else:
        lines = numpy_calls.statements(call, name)
    # Without its weakness a number of Python's decides about the dtype of a result like any other.
    if any(op.operands[number] in pointers for number in weak) and call.type.dtype.kind in "fc":
        lines.append(f"{name} = {name}.astype({dtype_text(call.type.dtype)}, copy=False)")
    return lines


def _strong(type: TensorType) -> TensorType:
    return TensorType(type.dtype, type.shape)


def _array(call: Call, number: int) -> str:
    text = call.operands[number]
    drop = call.types[number].is_complex and not call.type.is_complex
    return f"np.asarray({text})" + (".real" if drop else "")


def _reduction(call: Call) -> str:
    op, axis = call.op, call.op.keyword("axis")
    parts = [call.operands[0]]
    if len(axis) != call.types[0].ndim or op.keyword("keepdims"):
        parts.append(f"axis={axis[0] if len(axis) == 1 else tuple_text(axis)}")
    if op.keyword("keepdims"):
        parts.append("keepdims=True")
    return f"np.{op.name}({', '.join(parts)})"


def _check(call: Call) -> None:
    target = call.op.primitive.target or ""
    if has(target) or target in _FORMS:
        return
    raise CodegenError(
        f"{where(call.op.location)}{target} has no form on the GPU: neither CUDA's math library nor CuPy has it. "
        'Use target="c" or "numpy", or give the function a rule with a primal in terms of others.'
    )
