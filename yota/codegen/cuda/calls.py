"""The CuPy call that stands for each primitive that no kernel computes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from yota.codegen.literals import dtype_text, tuple_text
from yota.codegen.targets import numpy_calls
from yota.codegen.targets.call import Call
from yota.errors import CodegenError
from yota.ir.location import where
from yota.ir.types import TensorType

__all__ = ["statements"]

_REDUCTIONS = ("sum", "prod", "max", "min")
_LIBRARIES = ("numpy", "scipy")
_ABSENT = {
    "numpy": "spacing nextafter piecewise",
    "scipy.linalg": "logm solve_sylvester sqrtm",
    "scipy.special": (
        "betaincc dawsn ellipe ellipeinc ellipkinc elliprd erfi eval_chebyc eval_chebys eval_chebyt eval_chebyu"
        " eval_gegenbauer eval_genlaguerre eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre"
        " eval_sh_chebyt eval_sh_chebyu eval_sh_legendre hankel1 hankel2 hyp0f1 hyp1f1 hyp2f1 hyperu iv ive jv kn kv"
        " kve ndtri_exp powm1 spence spherical_in spherical_jn spherical_kn stdtr wrightomega yv"
    ),
}
"""Functions with rules that CuPy 14 has not."""


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
    if op.name in _REDUCTIONS:
        lines = [f"{name} = {_reduction(call)}"]
    elif op.primitive.elementwise and op.name == "astype":
        lines = [f"{name} = {_array(call, 0)}.astype({dtype_text(call.type.dtype)})"]
    elif op.primitive.target == "numpy.linalg.svdvals":
        lines = [f"{name} = np.linalg.svd({call.operands[0]}, compute_uv=False)"]
    elif op.name == "where":
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
    module, _, name = (call.op.primitive.target or "").rpartition(".")
    if module.split(".")[0] not in _LIBRARIES or name not in _ABSENT.get(module, "").split():
        return
    raise CodegenError(
        f"{where(call.op.location)}{module}.{name} has no form on the GPU: neither CUDA's math library nor CuPy has it."
        ' Use target="c" or "numpy", or give the function a rule with a primal in terms of others.'
    )
