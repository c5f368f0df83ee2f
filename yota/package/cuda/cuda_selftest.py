"""The check that a CUDA module can run on itself: its gradient against differences of its value."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from yota.emit.cuda.halves import is_half
from yota.emit.numpy_literals import dtype_text, tuple_text
from yota.emit.python.formatting import wrapped
from yota.errors import ArgumentError
from yota.package.c.interface import Parameter
from yota.package.examples import Integers

_PRECISE, _ROUGH = ("1e-3", "1e-6", "1e-10"), ("2e-3", "1e-2", "3e-4")
"""In double and in single precision: the distance between points, and what of slope and value may be lost."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    points: statements that make its arguments.
    call, moved: statements that call it there, and that give the value at a distance along a direction.
    distance, tolerance, noise: how far points are apart, and what of the slope and of the value may be lost.
    """

    gradient: str
    points: tuple[str, ...]
    call: tuple[str, ...]
    moved: tuple[str, ...]
    distance: str
    tolerance: str
    noise: str


def self_test_of(inputs: Sequence[Parameter], leaves: Collection[int], function: str) -> SelfTest:
    """The check.

    inputs, leaves: what the function takes, and by which of that the gradient is.
    function: the name of the function that gives value and gradient.
    Raises ArgumentError if there are numbers of 16 bits, whose differences say nothing.
    """
    dtypes = [inputs[leaf].type.dtype for leaf in leaves]
    if any(map(is_half, dtypes)):
        raise ArgumentError("self_test=True: differences of float16 numbers cannot check a gradient; leave it out")
    single = any(dtype in (np.dtype(np.float32), np.dtype(np.complex64)) for dtype in dtypes)
    steps = {leaf: f"steps[{number}]" for number, leaf in enumerate(leaves)}
    moved = [_moved(each, steps.get(number)) for number, each in enumerate(inputs)]
    names = ", ".join(each.name for each in inputs)
    integers = Integers.beside((each.type.dtype, each.type.shape) for each in inputs)
    points = wrapped([_point(each, integers) for each in inputs], 4)
    call = wrapped([f"value, *gradients = {function}({names})"], 4)
    away = wrapped([f"found = {function}({', '.join(moved)})", "return float(found[0])"], 8)
    return SelfTest(function, points, call, away, *(_ROUGH if single else _PRECISE))


def _point(parameter: Parameter, integers: Integers) -> str:
    dtype = dtype_text(parameter.type.dtype).replace("np.", "cp.", 1)
    shape = tuple_text(parameter.type.shape) if parameter.type.shape else "()"
    if parameter.type.dtype.kind == "b":
        return f"{parameter.name} = " + (f"cp.ones({shape}, {dtype})" if parameter.type.shape else "True")
    if parameter.type.dtype.kind not in "fc":
        start = integers.start()
        made = f"_integers({shape}, {start}, {integers.bound}, {dtype})" if parameter.type.shape else str(start)
        return f"{parameter.name} = {made}"
    return f"{parameter.name} = " + (f"_point({shape}, {dtype})" if parameter.type.shape else "0.5")


def _moved(parameter: Parameter, step: str | None) -> str:
    if step is None:
        return parameter.name
    if not parameter.type.shape:
        return f"{parameter.name} + distance * {step}.item()"
    return f"{parameter.name} + (distance * {step}).astype({parameter.name}.dtype)"
