"""The CuPy call that stands for each primitive that no kernel computes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from yota.emit.c.dialect import CUDA
from yota.emit.numpy_literals import dtype_text, tuple_text
from yota.emit.python import numpy_calls
from yota.emit.python.op_call import Call
from yota.errors import CodegenError
from yota.ir.infer import strong
from yota.ir.location import where
from yota.ir.semantics import AccessMap

_ON_THE_HOST = frozenset(
    {"yota.ir.factors", "yota.ir.hosted", "yota.ir.incomplete", "yota.ir.linear_solvers", "yota.ir.orders"}
)
"""Functions in NumPy's and SciPy's terms, and those that call another library."""


def has(target: str) -> bool:
    """Whether CuPy computes the function with this full name, as far as is known: nothing is of the user's own.

    >>> has("scipy.special.expit"), has("scipy.special.hyp2f1"), has("scipy.special._ufuncs._smirnovp")
    (True, False, False)
    """
    module, _, name = target.rpartition(".")
    if module in CUDA.table["modules"]:
        return name in CUDA.table["modules"][module].split()
    return target != "numpy.spacing" and module not in _ON_THE_HOST and not module.startswith("scipy.")


_FORMS = {
    "numpy.linalg.svdvals": "np.linalg.svd({0}, compute_uv=False)",
    # CuPy raises nothing for a singular matrix, and its SVD takes no stacks of matrices.
    "yota.ir.factors.cofactors": "np.linalg.det({0})[..., None, None] * np.swapaxes(np.linalg.inv({0}), -1, -2)",
}
"""Functions that CuPy has by another name, or that take several of its."""


def statements(call: Call, name: str, pointers: Collection[int]) -> list[str]:
    """Statements that bind ``name`` to the result.

    pointers: variables without axes that are arrays on the device, rather than Python numbers.
    Raises CodegenError if CuPy has no such function.
    """
    op = call.op
    _check(call)
    # A value that Python would hold stays on the device, in an array without axes.
    weak = [number for number, type in enumerate(call.types) if type.weak]
    call = replace(call, type=strong(call.type))
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
