"""The Python function around CUDA kernels: it allocates what they write, launches them, and calls CuPy in between."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.c.c_driver import KernelDriver
from yota.emit.c.frame import result_hint
from yota.emit.cuda.cuda_kernels import Step as Kernels
from yota.emit.cuda.cuda_plan import KernelPlan
from yota.emit.cuda.cupy_calls import statements
from yota.emit.cuda.runtime_indices import Check
from yota.emit.cuda.scatter import sorted_places
from yota.emit.cuda.thread_memory import Layout
from yota.emit.numpy_literals import dtype_text, shape_text, tuple_text
from yota.emit.python.function_plan import FunctionPlan, Step
from yota.emit.python.op_call import dtype_argument
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

_NUMPY = re.compile(r"(?<![\w.])np\.")
_SCIPY = re.compile(r"(?<![\w.])scipy\.")


class CudaDriver(KernelDriver):
    """Lowers a schedule of kernels and single ops.

    steps: kernels and ops in the order in which they run.
    layout: which values without axes are in the device's memory.
    additions: the kernel of each scatter that must not depend on the order of threads.
    checks: kernels that look at index arrays.
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
        for pointer, size in step.parts:
            buffers.append(self.names.fresh(pointer))
            lines.append(f"{buffers[-1]} = np.empty({size}, np.uint8)")
        arguments = [self._argument(variable) for variable in step.inputs]
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
        made = f"{name} = np.empty({shape_text(type.shape)}{dtype_argument(type)})"
        return [made, *lines, *self._launch(kernel, given), *self._narrowed(op.result)]

    def operand(self, op: Op, number: int) -> str:
        """Text of an operand in the dtype that is computed in."""
        text = super().operand(op, number)
        variable = op.operands[number]
        if variable not in self.layout.stored:
            return text
        dtype = dtype_text(self.tape.types[variable].dtype)
        return f"{text}.astype({dtype})" if self._is_array(variable) else f"{dtype}({text})"

    def _is_array(self, variable: int) -> bool:
        return bool(self.tape.types[variable].shape) or variable in self.layout.pointers

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
        return f", {self._dtype(type.dtype)}" if type.dtype.name == "bfloat16" else dtype_argument(type)

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
