"""The functions of a CUDA file, in C++ and in Python: what they launch, and what lies between the launches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.c.c_types import c_type, is_known
from yota.emit.c.dialect import CUDA, FOREIGN, C
from yota.emit.c.kernels import mentions
from yota.emit.c.lines import Needs, harmless
from yota.emit.c.parts import Tables
from yota.emit.cuda.cuda_plan import Call, HostBody, KernelPlan, Sort
from yota.emit.cuda.cuda_plan import Parameter as KernelParameter
from yota.emit.cuda.cuda_standalone import body_of
from yota.emit.cuda.halves import is_half
from yota.emit.names import Names
from yota.emit.numpy_literals import dtype_text, shape_text, tuple_text
from yota.ir.tape import Tape
from yota.optimize import inline
from yota.optimize.pipeline import run
from yota.package.c.c_functions import Recording
from yota.package.c.fixed_sizes import recorded
from yota.package.c.interface import Parameter, inputs_of, parameter_names, result
from yota.package.cuda.cuda_selftest import SelfTest, self_test_of
from yota.package.provenance import called, summary
from yota.package.request import Request
from yota.package.subject import Subject, subject_of
from yota.package.varying import Varying
from yota.transform.reverse.backward import Adjoints

FURTHER = "further_axes"
"""What extents are called that an argument has at any number of axes, and no argument."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function, in CUDA and in Python: texts only.

    parameters: declaration, name, and what it is for a reader.
    cleared: results that stay zero, and their bytes.
    workspace: bytes of it.
    buffers: name, type, start and bytes of each part of the workspace.
    launches, python: statements of the functions in C++ and in Python.
    arguments: what the Python function takes.
    sizes: names of the sizes that the C++ function takes.
    failed: the condition under which they will not do.
    made: definitions of what is computed from them.
    looks: whether it looks at indices.
    """

    name: str
    summary: str
    parameters: tuple[tuple[str, str, str], ...]
    cleared: tuple[tuple[str, str], ...]
    workspace: str
    buffers: tuple[tuple[str, str, str, str], ...]
    launches: tuple[str, ...]
    python: tuple[str, ...]
    arguments: tuple[str, ...]
    operations: str
    sizes: tuple[str, ...] = ()
    failed: str = ""
    made: tuple[str, ...] = ()
    looks: bool = False


def written(request: Request) -> FunctionWriter:
    """Functions for arguments of fixed sizes."""
    subject = subject_of(request.call, request.wrt)
    names = C.file_names()
    title = names.fresh(called(request.wish))
    writer = FunctionWriter(title, subject, names, summary(request.call.function))
    writer.fill(recorded(subject, request.wanted, scalar=True))
    writer.test = writer.self_test() if request.self_test else None
    return writer


@dataclass(frozen=True, slots=True)
class FromSizes:
    """What a function computes from sizes ahead of all else: the last inputs of its tape."""

    varying: tuple[Varying, ...] = ()
    fillings: Callable[[str], tuple[KernelPlan, ...]] = lambda name: ()


class FunctionWriter:
    """Writes the functions of one file.

    sizes: names of the sizes that functions take.
    in_python: a number as Python has it.
    made: what functions compute from sizes, by the identity of their tapes.
    condition: what sizes must be, in words; empty if they are numbers.
    tapes: what functions were made from.
    test: the check that the files can run on themselves.
    open: the size that stands for any number of axes; empty if there is none.
    """

    def __init__(
        self,
        title: str,
        subject: Subject,
        names: Names,
        about: str,
        sizes: tuple[str, ...] = (),
        in_python: Callable[[int], object] = str,
    ) -> None:
        self.sizes, self.in_python = sizes, in_python
        self.made: dict[int, FromSizes] = {}
        self.open = ""
        self.title, self.subject, self.names, self.about = title, subject, names, about
        self.inputs = inputs_of(subject, parameter_names(title, (*self.sizes, FURTHER)), _is_known)
        self.needs, self.tables = Needs(language=CUDA), Tables(names)
        self.functions: list[Function] = []
        self.kernels: list[KernelPlan] = []
        self.tapes: list[Tape] = []
        self.test: SelfTest | None = None
        self.condition = ""

    def fill(self, recordings: Iterable[tuple[str, Recording]]) -> None:
        """Write all functions."""
        self.tapes.append(self.subject.tape)
        for word, found in recordings:
            if isinstance(found, Adjoints):
                self.add_gradient(found)
            else:
                self.add(self.title, found.tape, [None] * len(found.tape.outputs))
            self.tapes += [found.tape] if word != "value" else []

    def self_test(self) -> SelfTest:
        """The check of the gradient, which must have been added last."""
        return self_test_of(self.inputs, self.subject.layout.wanted, self.functions[-1].name)

    def add_gradient(self, found: Adjoints) -> None:
        """Value and gradient in one."""
        leaves = self.subject.layout.wanted
        by = [self.inputs[leaf] for leaf in leaves]
        present = [each if variable is not None else None for each, variable in zip(by, found.variables, strict=True)]
        self.add(f"{self.title}_value_and_gradient", found.tape, [None, *by], present=[True, *map(bool, present)])

    def add(self, name: str, tape: Tape, by: list[Parameter | None], present: list[bool] | None = None) -> None:
        """One function; ``by`` says for each result which argument it is the gradient by."""
        name = self.names.fresh(name) if name != self.title else name
        local = C.names(
            name, [*FOREIGN, *self.sizes, "stream", "workspace", "fault", *(each.name for each in self.inputs)]
        )
        several = len([each for each in by if each is not None]) > 1
        types = iter(tape.types[output] for output in tape.outputs)
        results = []
        for number, each in enumerate(by):
            if each is None:
                wish = "value" if by.count(None) == 1 else f"value_{number}"
                results.append(result(wish, "value", next(types), local, _is_known))
            else:
                wish = f"gradient_{each.name}" if several else "gradient"
                there = present is None or present[number]
                type = next(types) if there else each.type
                results.append(result(wish, f"gradient by {each.name}", type, local, _is_known))
        computed = [each.name for each, there in zip(results, present or [True] * len(results), strict=True) if there]
        made = self.made.get(id(tape), FromSizes())
        body = body_of(
            run(inline.run(tape, alone=True)), name, [each.name for each in self.inputs], computed, self.tables,
            self.needs, sizes=self.sizes or None, made=[each.hint for each in made.varying],
            fillings=made.fillings(name),
        )  # fmt: skip
        body = replace(body, calls=tuple(map(self._with_sizes, body.calls)))
        self.kernels += [call.kernel for call in body.calls if isinstance(call, Call)]
        self.functions.append(self._function(name, results, computed, body))

    def _with_sizes(self, call: Call | Sort) -> Call | Sort:
        """A launch with the sizes that its kernel mentions."""
        if isinstance(call, Sort):
            return call
        own = [size for size in self.sizes if mentions(call.kernel.lines, size)]
        parameters = (*(KernelParameter("const int64_t ", size, "") for size in own), *call.kernel.parameters)
        kernel = replace(call.kernel, parameters=parameters)
        return Call(kernel, (*((size, "int64") for size in own), *call.arguments))

    def _function(self, name: str, results: list[Parameter], computed: list[str], body: HostBody) -> Function:
        cleared = tuple((each.name, str(_bytes(each))) for each in results if each.name not in computed)
        launches = tuple(map(_launch, body.calls))
        parameters = tuple((_declared(each), each.name, str(each.type)) for each in (*self.inputs, *results))
        parameters = (*(("int64_t ", size, "extent") for size in self.sizes), *parameters)
        starts = ("" if self.sizes else str(each.start) for each in body.buffers)
        buffers = tuple(
            (each.name, each.type, start, str(each.bytes)) for each, start in zip(body.buffers, starts, strict=True)
        )
        about = self.about if name == self.title and self.about else _SUMMARIES[len(self.functions)].format(self.title)
        return Function(
            name, harmless(about), parameters, cleared, "" if self.sizes else str(body.workspace), buffers, launches,
            self._python(results, computed, body), tuple(each.name for each in self.inputs), body.operations,
            self.sizes, looks=body.looks,
        )  # fmt: skip

    def _python(self, results: list[Parameter], computed: list[str], body: HostBody) -> tuple[str, ...]:
        lines = []
        for each in self.inputs:
            if each.type.shape:
                checked = (
                    f'_checked({each.name}, "{each.name}", {self._shape(each, tuple_text)}, {_cupy(each.type.dtype)})'
                )
                lines.append(f"{each.name} = {checked}")
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


_SUMMARIES = ("Value of {}.", "Value of {} and its gradient.")


def _launch(call: Call | Sort) -> str:
    """A launch in C++."""
    if isinstance(call, Sort):
        return f"sort_keys({call.keys}, {call.count!s}, stream);"
    launch = call.kernel.launch
    given = ", ".join(text for text, _ in call.arguments)
    return f"{call.kernel.name}<<<{launch.blocks}, {launch.threads}, 0, stream>>>({given});"


def _is_known(dtype: np.dtype[Any]) -> bool:
    return is_known(dtype) or is_half(dtype)


def _cupy(dtype: np.dtype[Any]) -> str:
    return dtype_text(dtype).replace("np.", "cp.", 1)


def _bytes(parameter: Parameter) -> int:
    return parameter.type.size * parameter.type.dtype.itemsize


def _declared(parameter: Parameter) -> str:
    kind = c_type(parameter.type.dtype)
    if parameter.written:
        return f"{kind} *"
    return f"const {kind} *" if parameter.type.shape else f"{kind} "
