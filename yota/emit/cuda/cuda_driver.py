"""The Python function around CUDA kernels: it allocates, launches, and calls CuPy in between."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.c.dialect import CUDA
from yota.emit.c.frame import result_hint
from yota.emit.cuda.cuda_plan import KernelPlan
from yota.emit.cuda.cuda_plan import Step as Kernels
from yota.emit.cuda.scatter import Check, sorted_places
from yota.emit.cuda.thread_memory import Layout
from yota.emit.numpy_literals import dtype_argument, dtype_text, shape_text, tuple_text
from yota.emit.python import numpy_calls
from yota.emit.python.function_plan import FunctionPlan, Step
from yota.emit.python.lower import KernelDriver
from yota.emit.python.op_call import Call
from yota.errors import CodegenError
from yota.ir.infer import strong
from yota.ir.location import where
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

_ON_THE_HOST = frozenset(
    f"yota.ir.{each}" for each in ("factors", "hosted", "incomplete", "integrals", "linear_solvers", "orders")
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
    """Statements that bind ``name`` to the result; ``pointers`` are arrays on the device without axes."""
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


_NUMPY = re.compile(r"(?<![\w.])np\.")
_SCIPY = re.compile(r"(?<![\w.])scipy\.")


class CudaDriver(KernelDriver):
    """Lowers a schedule of kernels and single ops.

    layout: which values without axes are in the device's memory.
    additions: the kernel of each scatter that must not depend on the order of threads.
    guards: the numbers of the tape's guards for whoever asks which one failed.
    fault: the name of what kernels tell of places outside of an axis by; empty if none does.
    """

    def __init__(
        self,
        tape: Tape,
        steps: Sequence[Kernels | Op],
        layout: Layout,
        additions: Mapping[int, KernelPlan],
        checks: Sequence[Check],
        guards: Sequence[int],
    ) -> None:
        self.layout, self._additions = layout, additions
        self._kernels = {step.outputs[0]: step for step in steps if isinstance(step, Kernels)}
        self._own = {variable for step in self._kernels.values() for variable in step.outputs}
        own = [kernel for step in self._kernels.values() for kernel in step.kernels]
        launched = (*own, *additions.values(), *(each.kernel for each in checks))
        super().__init__(tape, steps, [kernel.name for kernel in launched])
        self.names.fresh("cp")
        self._checks, self._numbers = checks, guards
        telling = bool(checks) or any(step.checked for step in self._kernels.values())
        self.fault = self.names.fresh("fault") if telling else ""

    def plan(self) -> FunctionPlan:
        """The plan."""
        plan = super().plan()
        banner = self._banner(plan, "CUDA and CuPy", "Kernels", lambda each: self.layout.type(each, self.tape.types))
        imports = [_with_cupy(line) for line in plan.imports if line != "import numpy as np"]
        return replace(
            plan,
            banner=banner,
            imports=("import cupy as cp", *imports),
            constants=tuple(map(_with_cupy, plan.constants)),
            decorators=(),
            result=_with_cupy(plan.result),
            steps=tuple(Step(before=tuple(map(_with_cupy, step.before))) for step in plan.steps),
        )

    def name(self, variable: int) -> str:
        """A name for a variable, as the kernels call it."""
        hint = result_hint(self.tape, variable)
        return super().name(variable) if hint == f"v{variable}" else self.names.fresh(hint)

    def _lower_op(self, op: Op) -> Step:
        step = self._kernels.get(op.result)
        if step is not None:
            return self._launched(op, step)
        looks: list[str] = []
        for check in self._checks:
            if check.op == op.result:
                text = self.operand(op, op.operands.index(check.variable))
                given = f"np.ascontiguousarray({text}, {dtype_text(check.dtype)})"
                looks += self._launch(check.kernel, [given, self.fault])
        if op.result in self._additions:
            return Step(before=(*self.remark(op), *looks, *self._added(op, self._additions[op.result])))
        operands = tuple(self.operand(op, number) for number in range(len(op.operands)))
        name = self.name(op.result)
        lines = statements(self.call(op, operands), name, self.layout.pointers)
        self.texts[op.result] = name
        lines += self._narrowed(op.result)
        return Step(before=(*self.remark(op), *looks, *lines))

    def guard_number(self, index: int) -> int:
        """What a guard is called where it fails."""
        return self._numbers[index]

    def _launched(self, op: Op, step: Kernels) -> Step:
        lines = list(self.remark(op))
        for variable in step.outputs:
            name = self.texts[variable] = self.name(variable)
            type = self.layout.type(variable, self.tape.types)
            shape = shape_text(type.shape) if type.shape else "()"
            lines.append(f"{name} = np.empty({shape}{self._dtype_argument(type)})")
        buffers = []
        for pointer, _, size in step.parts:
            buffers.append(self.names.fresh(pointer))
            lines.append(f"{buffers[-1]} = np.empty({size}, np.uint8)")
        arguments = [self._argument(variable) for variable in step.inputs]
        if step.dense:
            moved = [variable in self.layout.strides for variable in step.inputs]
            arguments = [
                f"np.ascontiguousarray({text})" if each else text for text, each in zip(arguments, moved, strict=True)
            ]
        early = [self.texts[variable] for variable in step.outputs if variable not in step.finished]
        fault = [self.fault] if step.checked else []
        lines += self._launch(step.kernels[0], [*arguments, *buffers, *early, *fault])
        if len(step.kernels) > 1:
            lines += self._launch(step.kernels[1], [*buffers, *(self.texts[variable] for variable in step.finished)])
        return Step(before=tuple(lines))

    def _added(self, op: Op, kernel: KernelPlan) -> list[str]:
        """A scatter, whose pieces are sorted by their places."""
        type = self.tape.types[op.result]
        name = self.texts[op.result] = self.name(op.result)
        lines, order, starts = self._sorted_places(op)
        given = [f"np.ascontiguousarray({self.operand(op, 0)})", order, starts, name]
        made = f"{name} = np.empty({shape_text(type.shape)}{dtype_argument(type.dtype)})"
        return [made, *lines, *self._launch(kernel, given), *self._narrowed(op.result)]

    def operand(self, op: Op, number: int) -> str:
        """Text of an operand in the dtype that is computed in."""
        text = super().operand(op, number)
        variable = op.operands[number]
        if variable not in self.layout.stored:
            return text
        dtype = dtype_text(self.tape.types[variable].dtype)
        is_array = self.tape.types[variable].shape or variable in self.layout.pointers
        return f"{text}.astype({dtype})" if is_array else f"{dtype}({text})"

    def _narrowed(self, variable: int) -> list[str]:
        """A statement that gives a result the dtype that it has in memory."""
        if variable not in self.layout.stored:
            return []
        name = self.texts[variable]
        return [f"{name} = {name}.astype({self._dtype(self.layout.stored[variable])})"]

    def _dtype(self, dtype: np.dtype[Any]) -> str:
        # NumPy has no name of its own for it.
        return self.constants.name("bfloat16", dtype) if dtype.name == "bfloat16" else dtype_text(dtype)

    def _dtype_argument(self, type: TensorType) -> str:
        return f", {self._dtype(type.dtype)}" if type.dtype.name == "bfloat16" else dtype_argument(type.dtype)

    def _sorted_places(self, op: Op) -> tuple[list[str], str, str]:
        """The pieces sorted by their places, and where each place's pieces start: statements, and both names."""
        arrays = op.operands[1:]
        extents = self.tape.types[op.result].shape[: len(arrays)]
        if all(variable in self.tape.constants for variable in arrays):
            found = sorted_places([self.tape.constants[variable] for variable in arrays], extents)
            known = [self.constants.name(*each) for each in zip(("order", "starts"), found, strict=True)]
            return [], known[0], known[1]
        flat, order, starts = (self.names.fresh(each) for each in ("places", "order", "starts"))
        texts = [self.operand(op, number) for number in range(1, len(op.operands))]
        places = f"({texts[0]} % {extents[0]})"
        if len(texts) > 1:
            places = f'np.ravel_multi_index({tuple_text(texts)}, {tuple_text(extents)}, mode="wrap")'
        lines = [
            f"{flat} = {places}.reshape(-1)",
            f'{order} = np.argsort({flat}, kind="stable").astype(np.int64)',
            f"{starts} = np.searchsorted({flat}[{order}], np.arange({math.prod(extents) + 1})).astype(np.int64)",
        ]
        return lines, order, starts

    def _argument(self, variable: int) -> str:
        type = self.layout.type(variable, self.tape.types)
        text = self._text(variable)
        if not type.shape and variable not in self.layout.pointers:
            return f"{self._dtype(type.dtype)}({text})"
        given = variable in self._own or any(item.variable == variable for item in self.tape.inputs)
        return text if given or variable in self.tape.constants else f"np.ascontiguousarray({text})"

    def _launch(self, kernel: KernelPlan, arguments: Sequence[str]) -> list[str]:
        given = ", ".join(arguments)
        if len(arguments) == 1:
            given += ","
        launch = kernel.launch
        return [f"{kernel.name}(({launch.blocks},), ({launch.threads},), ({given}))"]


def _with_cupy(line: str) -> str:
    if line.lstrip().startswith("#"):
        return line
    return _SCIPY.sub("cupyx.scipy.", _NUMPY.sub("cp.", line))
