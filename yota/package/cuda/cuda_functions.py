"""The functions of a CUDA file, in C++ and in Python: what they launch, what lies between, and their own check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.c.dialect import STORED, C, c_type
from yota.emit.c.kernels import mentions
from yota.emit.c.lines import harmless
from yota.emit.cuda.cuda_plan import Call, HostBody, KernelPlan, Sort
from yota.emit.cuda.cuda_plan import Parameter as KernelParameter
from yota.emit.cuda.cuda_standalone import Host
from yota.emit.numpy_literals import dtype_text, shape_text, tuple_text
from yota.emit.python.formatting import wrapped
from yota.errors import ArgumentError
from yota.ir.extents import Extent
from yota.optimize import inline
from yota.optimize.pipeline import run
from yota.package.c.c_functions import FileWriter
from yota.package.c.interface import Parameter
from yota.package.examples import Integers
from yota.package.recorded_matrices import Recording, recorded
from yota.package.request import Request
from yota.package.subject import subject_of
from yota.transform.reverse.backward import Adjoints
from yota.transform.sizes.size_expressions import Samples

_PRECISE, _ROUGH = ("1e-3", "1e-6", "1e-10"), ("2e-3", "1e-2", "3e-4")
"""In double and in single precision: the distance between points, and what of slope and value may be lost."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """Texts for the template.

    call, moved: statements that call it there, and that give the value at a distance along a direction.
    """

    gradient: str
    points: tuple[str, ...]
    call: tuple[str, ...]
    moved: tuple[str, ...]
    distance: str
    tolerance: str
    noise: str


def self_test_of(inputs: Sequence[Parameter], leaves: Collection[int], function: str) -> SelfTest:
    """The check of ``function``, which gives the value and the gradient by the inputs at positions ``leaves``."""
    dtypes = [inputs[leaf].type.dtype for leaf in leaves]
    if any(dtype.name in STORED for dtype in dtypes):
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


FURTHER = "further_axes"
"""What extents are called that an argument has at any number of axes, and no argument."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, in CUDA and in Python.

    cleared: results that stay zero, and their bytes.
    failed: the condition under which they will not do.
    """

    name: str
    summary: str
    parameters: tuple[tuple[str, str, str], ...]
    cleared: tuple[tuple[str, int], ...]
    body: HostBody
    python: tuple[str, ...]
    arguments: tuple[str, ...]
    sizes: tuple[str, ...]
    failed: str = ""


def written(request: Request) -> FunctionWriter:
    """Functions for arguments of fixed sizes."""
    subject = subject_of(request.call, request.wrt)
    writer = FunctionWriter(request, subject)
    writer.fill((word, recorded(subject, word)) for word in request.ordered)
    return writer


class FunctionWriter(FileWriter):
    """Writes the functions of one pair of files.

    python: how sizes are spelled in Python; None if they are numbers.
    open: the size that stands for any number of axes; empty if there is none.
    """

    further = (FURTHER,)
    tables_in = C  # which has no numbers of 16 bits
    python: Samples | None = None
    open = ""
    functions: list[Function]
    kernels: list[KernelPlan]
    test: SelfTest | None

    def in_python(self, number: int) -> int:
        """A number as Python has it."""
        return Extent(number.values, self.python) if self.python and isinstance(number, Extent) else number

    def self_test(self) -> SelfTest:
        """The check of the gradient, which must have been added last."""
        return self_test_of(self.inputs, self.subject.layout.wanted, self.functions[-1].name)

    def add(self, word: str, found: Recording) -> None:
        """The function itself, or value and gradient in one."""
        name = self.file_names.fresh(f"{self.title}_value_and_gradient") if word == "gradient" else self.title
        names, tape = self.names(name, "stream", "workspace", "fault"), found.tape
        results = self.values(self.subject.tape, names)
        present = [True] * len(results)
        if isinstance(found, Adjoints):
            results += self.gradients(names)
            present += [variable is not None for variable in found.variables]
        computed = [each.name for each, there in zip(results, present, strict=True) if there]
        host = Host(
            run(inline.run(tape, alone=True)), name, [each.name for each in self.inputs], computed,
            self.shared.tables, self.shared.needs, sizes=self.sizes or None,
        )  # fmt: skip
        body = host.body()
        body = replace(body, calls=tuple(map(self._with_sizes, body.calls)))
        self.kernels += [call.kernel for call in body.calls if isinstance(call, Call)]
        sizes = [("int64_t ", size, "extent") for size in self.sizes]
        parameters = [(_declared(each), each.name, str(each.type)) for each in (*self.inputs, *results)]
        cleared = tuple((each.name, each.type.nbytes) for each in results if each.name not in computed)
        about = f"Value of {self.title}{'' if name == self.title else ' and its gradient'}."
        about = self.summary if name == self.title and self.summary else about
        python, arguments = self._python(results, computed, body), tuple(each.name for each in self.inputs)
        self.functions.append(
            Function(
                name, harmless(about), (*sizes, *parameters), cleared, body, python, arguments, self.sizes,
            )
        )  # fmt: skip

    def _with_sizes(self, call: Call | Sort) -> Call | Sort:
        """A launch with the sizes that its kernel mentions."""
        if isinstance(call, Sort):
            return call
        own = [size for size in self.sizes if mentions(call.kernel.lines, size)]
        parameters = (*(KernelParameter("const int64_t ", size, "") for size in own), *call.kernel.parameters)
        kernel = replace(call.kernel, parameters=parameters)
        return Call(kernel, (*((size, "int64") for size in own), *call.arguments))

    def _python(self, results: list[Parameter], computed: list[str], body: HostBody) -> tuple[str, ...]:
        lines = []
        for each in self.inputs:
            if each.type.shape:
                shape = self._shape(each, tuple_text)
                lines.append(f'{each.name} = _checked({each.name}, "{each.name}", {shape}, {_cupy(each.type.dtype)})')
        for each in results:
            maker = "empty" if each.name in computed else "zeros"
            shape = self._shape(each, shape_text) if each.type.shape else "()"
            lines.append(f"{each.name} = cp.{maker}({shape}, {_cupy(each.type.dtype)})")
        lines += [f"{each.name} = cp.empty({self.in_python(each.bytes)!s}, cp.uint8)" for each in body.buffers]
        lines += ["fault = _fault()"] if body.looks else []
        for call in body.calls:
            if isinstance(call, Sort):
                lines.append(f"{call.keys}.view(cp.uint64).sort()")
                continue
            launch = call.kernel.launch
            given = tuple_text(f"{_cupy(np.dtype(kind))}({text})" if kind else text for text, kind in call.arguments)
            lines.append(f'_kernel("{call.kernel.name}")(({launch.blocks},), ({launch.threads},), {given})')
        lines.append(f"return {', '.join(each.name for each in results)}")
        return tuple(lines)

    def _shape(self, parameter: Parameter, spelled: Callable[[Sequence[object]], str]) -> str:
        """The shape of an array in Python, where one axis may stand for several."""
        shape = parameter.type.shape
        texts = [f"*{FURTHER}" if str(each) == self.open else str(self.in_python(each)) for each in shape]
        return FURTHER if texts == [f"*{FURTHER}"] else spelled(texts)


def _cupy(dtype: np.dtype[Any]) -> str:
    return dtype_text(dtype).replace("np.", "cp.", 1)


def _declared(parameter: Parameter) -> str:
    kind = c_type(parameter.type.dtype)
    if parameter.written:
        return f"{kind} *"
    return f"const {kind} *" if parameter.type.shape else f"{kind} "
