"""The check that a module can run on itself: its gradient against complex steps, or against differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yota.errors import YotaError
from yota.generation.constants import Constants
from yota.generation.functions import Documented
from yota.generation.kernel import Kernel, kernel_of
from yota.generation.signature import Parameter
from yota.generation.subject import Subject
from yota.ir.tape import Tape
from yota.rules.registry import registry
from yota.tracing.record import Leaf, record

__all__ = ["SelfTest", "self_test_of"]

_ANALYTIC = frozenset(
    "add subtract multiply divide power negative positive square sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan"
    " sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh reciprocal sum prod cumsum matmul einsum getitem"
    " setitem scatter reshape transpose broadcast_to concatenate stack astype".split()
)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    Parameters
    ----------
    method
        What the gradient is compared with.
    gradient
        Name of the function under test.
    arguments
        Its arguments.
    points
        Statements that make them.
    lines
        Statements that compute ``expected`` from ``steps``.
    tolerance
        Largest relative difference.
    """

    method: str
    gradient: str
    arguments: str
    points: tuple[str, ...]
    lines: tuple[str, ...]
    tolerance: str


def self_test_of(subject: Subject, common: Documented, constants: Constants) -> tuple[SelfTest, Kernel | None]:
    """The check, and the kernel for complex arguments if there is one."""
    names = [each.name for each in common.parameters]
    points = tuple(f"{each.name}: Any = {_point(each, common.sizes)}" for each in common.parameters)
    wanted = {leaf: f"steps[{number}]" for number, leaf in enumerate(subject.layout.wanted)}
    gradient = f"{common.name}_gradient"
    kernel = None if common.sizes else _complex(subject, common, constants)
    if kernel is not None:
        moved = [f"{name} + 1e-30j * {wanted[leaf]}" if leaf in wanted else name for leaf, name in enumerate(names)]
        step = f"expected = np.imag({kernel.name}({', '.join(moved)})) / 1e-30"
        return SelfTest("complex steps", gradient, ", ".join(names), points, (step,), "1e-9"), kernel
    ahead, back = (
        ", ".join(f"{name} {sign} 1e-6 * {wanted[leaf]}" if leaf in wanted else name for leaf, name in enumerate(names))
        for sign in "+-"
    )
    lines = (
        f"ahead = float({common.name}_value_and_gradient({ahead})[0])",
        f"back = float({common.name}_value_and_gradient({back})[0])",
        "expected = (ahead - back) / 2e-6",
    )
    return SelfTest("central differences", gradient, ", ".join(names), points, lines, "1e-5"), None


def _point(parameter: Parameter, sizes: Sequence[str]) -> str:
    extents = [4 + sizes.index(extent) if isinstance(extent, str) else extent for extent in parameter.shape]
    shape = f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"
    if parameter.type.dtype.kind in "fc":
        cast = "" if parameter.type.dtype == np.float64 else f".astype(np.{parameter.type.dtype.name})"
        return f"_point({shape}){cast}"
    return f"np.{'ones' if parameter.type.dtype.kind == 'b' else 'zeros'}({shape}, np.{parameter.type.dtype.name})"


def _complex(subject: Subject, common: Documented, constants: Constants) -> Kernel | None:
    """The function on complex arguments, if it is analytic throughout."""
    leaves = list(subject.arguments.leaves)
    for leaf in subject.layout.wanted:
        known = leaves[leaf]
        if np.asarray(known.value).dtype != np.float64:
            return None
        value = complex(known.value) if isinstance(known.value, float) else np.asarray(known.value, np.complex128)
        leaves[leaf] = Leaf(value if np.ndim(value) else np.complex128(value), known.argument, known.name, known.path)
    try:
        tape: Tape = record(subject.function, leaves, subject.arguments.rebuild, registry=registry()).tape
        if not all(op.name in _ANALYTIC for op in tape.ops) or tape.guards:
            return None
        return kernel_of(tape, f"_{common.name}_complex", constants)
    except (YotaError, TypeError, ValueError, ArithmeticError):
        return None
