"""From a request to the text of a CUDA file and of a Python file that launches its kernels with CuPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.autodiff.reverse import gradient_tape
from yota.codegen.c.lines import Needs
from yota.codegen.c.names import FOREIGN, FileNames, LocalNames
from yota.codegen.c.tables import Tables
from yota.codegen.c.types import c_type
from yota.codegen.cuda.file import inline_parts, preludes
from yota.codegen.cuda.plan import KernelPlan
from yota.codegen.cuda.standalone import Body, body_of
from yota.codegen.literals import dtype_text, shape_text, tuple_text
from yota.codegen.render import render
from yota.codegen.wrap import wrapped
from yota.errors import ArgumentError
from yota.generation.c.contents import head_lines, stem_of, tidied
from yota.generation.c.interface import Parameter, arguments_of, harmless, parameter_names, result
from yota.generation.cuda.selftest import SelfTest, self_test_of
from yota.generation.plain import docstring
from yota.generation.provenance import called, description, headline, reference_of, summary
from yota.generation.request import Request
from yota.generation.subject import Subject, source_of, subject_of
from yota.ir.tape import Tape
from yota.passes.pipeline import run
from yota.rules.registry import registry

__all__ = ["collected"]


@dataclass(frozen=True, slots=True)
class _Function:
    """One function, in CUDA and in Python: texts only."""

    name: str
    summary: str
    parameters: tuple[tuple[str, str, str], ...]
    cleared: tuple[tuple[str, int], ...]
    workspace: int
    buffers: tuple[tuple[str, str, int], ...]
    launches: tuple[str, ...]
    python: tuple[str, ...]
    arguments: tuple[str, ...]
    operations: str


@dataclass(frozen=True, slots=True)
class _Plan:
    license: tuple[str, ...]
    banner: tuple[str, ...]
    source: tuple[str, ...]
    preludes: tuple[str, ...]
    tables: tuple[str, ...]
    parts: tuple[Any, ...]
    kernels: tuple[KernelPlan, ...]
    functions: tuple[_Function, ...]


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Texts of the files by their names, and notes for the user.

    Raises
    ------
    ArgumentError
        If a size has a name, or something is asked for beside value and gradient.
    CodegenError
        If something in the function cannot be said in kernels.
    """
    _check(request)
    subject = subject_of(request.call, request.wrt)
    names = FileNames()
    title = names.fresh(called(request.wish))
    writer = _Writer(title, subject, names, summary(request.call.function))
    tapes = [subject.tape]
    if "value" in request.wanted:
        writer.add(title, subject.tape, [None] * len(subject.tape.outputs))
    if "gradient" in request.wanted:
        tapes.append(writer.add_gradient())
    stem = stem_of(request.stem or title)
    banner = [*head_lines(request), "", harmless(f"{headline(request.wanted)} of {reference_of(request)}."), ""]
    banner += map(harmless, description(request, tapes))
    banner += ["", *_CONVENTIONS]
    plan = _Plan(
        license=tuple(map(harmless, request.license.split("\n"))) if request.license else (),
        banner=tuple(banner),
        source=tuple(harmless(line.expandtabs(4)) for line in source_of(request.call.function).split("\n")),
        preludes=preludes(writer.needs, writer.totals),
        tables=tuple(_on_device(line) for line in writer.tables.lines),
        parts=inline_parts(writer.needs),
        kernels=tuple(writer.kernels),
        functions=tuple(writer.functions),
    )
    code = tidied(render("cuda/pair/source.cu.jinja", plan=plan))
    module = render(
        "cuda/pair/module.py.jinja",
        plan=plan,
        test=writer.self_test() if request.self_test else None,
        head=[docstring(line) for line in head_lines(request)],
        summary=f"{headline(request.wanted)} of {docstring(reference_of(request))}, with the kernels of {stem}.cu.",
        code=code.replace('"""', "'''"),
    )
    notes = [f"{request.wish!r} is called {title} in the files"] if title != request.wish else []
    return {f"{stem}.cu": code, f"{stem}.py": module}, tuple(notes)


_CONVENTIONS = (
    "Arrays are in device memory, in C order without gaps. Results overlap neither arguments nor one another.",
    "Functions launch on a stream and return at once; `workspace` is device memory of the size that the function of",
    "that name gives, not to be used elsewhere until the stream is done. Totals have the same bits each time.",
)


def _check(request: Request) -> None:
    sizes = request.call.dimensions()
    if sizes:
        raise ArgumentError(
            f'target="cuda" needs sizes that are numbers, and {", ".join(sizes)} is a name: write a spec such as '
            f'float64[100,3], or generate for NumPy (target="numpy")'
        )
    more = [each for each in request.wanted if each not in ("value", "gradient")]
    if more:
        raise ArgumentError(f'with_={more[0]!r}: target="cuda" has value and gradient; use target="c" or "numpy"')
    if request.strict:
        raise ArgumentError('strict=True is not for target="cuda"; use target="c" or "numpy"')
    if request.self_test and "gradient" not in request.wanted:
        raise ArgumentError("self_test checks the gradient; add 'gradient' to with_")


def _on_device(line: str) -> str:
    return line.replace("static const", "static __device__ const", 1) if line.startswith("static const") else line


class _Writer:
    """Writes the functions of one file."""

    def __init__(self, title: str, subject: Subject, names: FileNames, about: str) -> None:
        self.title, self.subject, self.names, self.about = title, subject, names, about
        self.inputs = arguments_of(subject.arguments.leaves, parameter_names(title))
        self.needs, self.totals, self.tables = Needs(), set[str](), Tables(names)
        self.functions: list[_Function] = []
        self.kernels: list[KernelPlan] = []

    def self_test(self) -> SelfTest:
        """The check of the gradient, which must have been added last."""
        return self_test_of(self.inputs, self.subject.layout.wanted, self.functions[-1].name)

    def add_gradient(self) -> Tape:
        """Value and gradient in one."""
        leaves = self.subject.layout.wanted
        tape = self.subject.tape
        found = gradient_tape(tape, [tape.inputs[leaf].variable for leaf in leaves], registry())
        by = [self.inputs[leaf] for leaf in leaves]
        present = [each if variable is not None else None for each, variable in zip(by, found.variables, strict=True)]
        self.add(f"{self.title}_value_and_gradient", found.tape, [None, *by], present=[True, *map(bool, present)])
        return found.tape

    def add(self, name: str, tape: Tape, by: list[Parameter | None], present: list[bool] | None = None) -> None:
        """One function; ``by`` says for each result which argument it is the gradient by."""
        name = self.names.fresh(name) if name != self.title else name
        local = LocalNames(name, [*FOREIGN, "stream", "workspace", *(each.name for each in self.inputs)])
        several = len([each for each in by if each is not None]) > 1
        types = iter(tape.types[output] for output in tape.outputs)
        results = []
        for number, each in enumerate(by):
            if each is None:
                wish = "value" if by.count(None) == 1 else f"value_{number}"
                results.append(result(wish, "value", next(types), local))
            else:
                wish = f"gradient_{each.name}" if several else "gradient"
                there = present is None or present[number]
                results.append(result(wish, f"gradient by {each.name}", next(types) if there else each.type, local))
        computed = [each.name for each, there in zip(results, present or [True] * len(results), strict=True) if there]
        body = body_of(
            run(tape), name, [each.name for each in self.inputs], computed, self.tables, self.needs, self.totals
        )
        self.kernels += [call.kernel for call in body.calls]
        self.functions.append(self._function(name, results, computed, body))

    def _function(self, name: str, results: list[Parameter], computed: list[str], body: Body) -> _Function:
        cleared = tuple((each.name, _bytes(each)) for each in results if each.name not in computed)
        launches = tuple(
            f"{call.kernel.name}<<<{call.kernel.launch.blocks}, {call.kernel.launch.threads}, 0, stream>>>"
            f"({', '.join(text for text, _ in call.arguments)});"
            for call in body.calls
        )
        parameters = tuple((_declared(each), each.name, str(each.type)) for each in (*self.inputs, *results))
        buffers = tuple((each.name, each.type, each.start) for each in body.buffers)
        about = self.about if name == self.title and self.about else _SUMMARIES[len(self.functions)].format(self.title)
        return _Function(
            name, harmless(about), parameters, cleared, body.workspace, buffers, launches,
            self._python(results, computed, body), tuple(each.name for each in self.inputs), body.operations,
        )  # fmt: skip

    def _python(self, results: list[Parameter], computed: list[str], body: Body) -> tuple[str, ...]:
        lines = []
        for each in self.inputs:
            if each.type.shape:
                checked = (
                    f'_checked({each.name}, "{each.name}", {tuple_text(each.type.shape)}, {_cupy(each.type.dtype)})'
                )
                lines.append(f"{each.name} = {checked}")
        for each in results:
            maker = "empty" if each.name in computed else "zeros"
            shape = shape_text(each.type.shape) if each.type.shape else "()"
            lines.append(f"{each.name} = cp.{maker}({shape}, {_cupy(each.type.dtype)})")
        lines += [f"{each.name} = cp.empty({each.bytes}, cp.uint8)" for each in body.buffers]
        for call in body.calls:
            launch = call.kernel.launch
            given = tuple_text(f"{_cupy(np.dtype(kind))}({text})" if kind else text for text, kind in call.arguments)
            lines.append(f'_kernel("{call.kernel.name}")(({launch.blocks},), ({launch.threads},), {given})')
        lines.append(f"return {', '.join(each.name for each in results)}")
        return wrapped(lines, 4)


_SUMMARIES = ("Value of {}.", "Value of {} and its gradient.")


def _cupy(dtype: np.dtype[Any]) -> str:
    return dtype_text(dtype).replace("np.", "cp.", 1)


def _bytes(parameter: Parameter) -> int:
    return parameter.type.size * parameter.type.dtype.itemsize


def _declared(parameter: Parameter) -> str:
    kind = c_type(parameter.type.dtype)
    if parameter.written:
        return f"{kind} *"
    return f"const {kind} *" if parameter.type.shape else f"{kind} "
