"""The check that a module can run on itself: its gradient against complex steps, or against differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yota.emit.numpy_literals import dtype_text, tuple_text
from yota.errors import YotaError
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.package.constants import Constants
from yota.package.examples import Integers
from yota.package.python_kernel import Kernel, kernel_of
from yota.package.signature import Parameter
from yota.package.subject import Subject
from yota.rules.registry import registry
from yota.run.derivatives.inside import record

_ANALYTIC = frozenset(
    "add subtract multiply divide power negative positive square sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan"
    " sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh reciprocal sum prod cumsum matmul einsum getitem"
    " setitem scatter reshape transpose broadcast_to concatenate stack astype".split()
)


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    method: what the gradient is compared with.
    function: name of the function under test, which gives value and gradient.
    places: positions of the arguments that it differentiates by.
    lines: statements that compute ``expected`` from ``steps``.
    """

    method: str
    function: str
    places: str
    points: tuple[str, ...]
    lines: tuple[str, ...]
    tolerance: str


def self_test_of(
    subject: Subject, name: str, parameters: Sequence[Parameter], sizes: Sequence[str], kernel: Kernel | None
) -> SelfTest:
    """The check of the function ``name``; ``kernel`` is that for complex arguments, if there is one."""
    shapes = [_shape(each, sizes) for each in parameters]
    integers = Integers.beside((each.type.dtype, shape) for each, shape in zip(parameters, shapes, strict=True))
    points = tuple(f"{_point(each, shape, integers)}," for each, shape in zip(parameters, shapes, strict=True))
    places, function = tuple_text(subject.layout.wanted), f"{name}_value_and_gradient"
    if kernel is not None:
        line = f"expected = np.imag({kernel.name}(*_moved(point, steps, 1e-30j))) / 1e-30"
        return SelfTest("complex steps", function, places, points, (line,), "1e-9")
    lines = (
        f"ahead = float({function}(*_moved(point, steps, 1e-6))[0])",
        f"back = float({function}(*_moved(point, steps, -1e-6))[0])",
        "expected = (ahead - back) / 2e-6",
    )
    return SelfTest("central differences", function, places, points, lines, "1e-5")


def _shape(parameter: Parameter, sizes: Sequence[str]) -> tuple[int, ...]:
    return tuple(4 + sizes.index(extent) if isinstance(extent, str) else extent for extent in parameter.shape)


def _point(parameter: Parameter, extents: tuple[int, ...], integers: Integers) -> str:
    shape, dtype = tuple_text(extents), parameter.type.dtype
    if dtype.kind in "fc":
        return f"_point({shape})" + ("" if dtype == np.float64 else f".astype({dtype_text(dtype)})")
    if dtype.kind == "b":
        return f"np.ones({shape}, {dtype_text(dtype)})"
    return f"_integers({shape}, {integers.start()}, {integers.bound}).astype({dtype_text(dtype)})"


def complex_kernel(subject: Subject, name: str, constants: Constants) -> Kernel | None:
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
        return kernel_of(tape, name, constants)
    except (YotaError, TypeError, ValueError, ArithmeticError):
        return None
