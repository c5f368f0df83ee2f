"""The functions of a C file, written: what its texts are put together from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from yota.autodiff.reverse import Adjoints
from yota.codegen.c.lines import Needs
from yota.codegen.c.names import FileNames
from yota.codegen.c.parts import Tables
from yota.codegen.c.plan import KernelPlan
from yota.codegen.c.standalone import Shared
from yota.errors import CodegenError
from yota.generation.c.extension import SizedCall, called_from_python
from yota.generation.c.functions import FunctionWriter
from yota.generation.c.interface import Function, Parameter, arguments_of, parameter_names
from yota.generation.c.selftest import SelfTest, self_test_of
from yota.generation.derivatives import Derivative, hessian_of, hvp_of, jacobian_of
from yota.generation.provenance import called, summary
from yota.generation.request import Request
from yota.generation.subject import Subject, subject_of
from yota.ir.tape import Guard, Tape

Recording: TypeAlias = "Subject | Adjoints | Derivative"
"""What a function is written from."""
_MOST_STRAIGHT = 20_000
"""Ops up to which a function is written step by step where C cannot say its loops."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a file is put together from.

    title: name of the function itself in C.
    inputs: its parameters.
    needs, tables: what they rely on.
    tapes: what they were made from.
    guards: decisions that they check.
    test: the check that the file can run on itself.
    wrapped: functions as Python calls them.
    sizes: what sizes must be, in words; empty if they are numbers.
    call: where Python finds sizes.
    """

    title: str
    inputs: tuple[Parameter, ...]
    functions: tuple[Function, ...]
    needs: Needs
    tables: tuple[str, ...]
    tapes: tuple[Tape, ...]
    guards: tuple[Guard, ...]
    test: SelfTest | None
    wrapped: tuple[KernelPlan, ...]
    sizes: str = ""
    call: SizedCall | None = None


def written(request: Request) -> Written:
    """Functions for arguments of fixed sizes; ops that repeat are loops if C can say these."""
    subject = subject_of(request.call, request.wrt)
    if request.call.rolls and any(op.regions for op in subject.tape.ops):
        try:
            return _written(request, subject)
        except CodegenError:
            subject = subject_of(replace(request.call, rolls=False), request.wrt)
            if len(subject.tape) > _MOST_STRAIGHT:
                raise
    return _written(request, subject)


def _written(request: Request, subject: Subject) -> Written:
    names = FileNames()
    title = names.fresh(called(request.wish))
    inputs = arguments_of(subject.arguments.leaves, parameter_names(title))
    shared = Shared(names, Needs(), Tables(names))
    writer = FunctionWriter(title, subject, inputs, summary(request.call.function), shared, request.strict)
    tapes = filled(writer, recorded(subject, request.wanted, scalar=True))
    functions = tuple(writer.found)
    return Written(
        title,
        inputs,
        functions,
        shared.needs,
        tuple(shared.tables.lines),
        tuple(tapes),
        tuple(subject.tape.guards),
        tested(request, title, functions, subject),
        called_from_python(functions) if request.extension else (),
    )


def recorded(
    subject: Subject, wanted: Sequence[str], *, scalar: bool, whole: Mapping[str, bool] | None = None
) -> Iterator[tuple[str, Recording]]:
    """What functions give, and what they are written from; ``whole`` and ``scalar`` are those of `jacobian_of`."""
    if "value" in wanted:
        yield "value", subject
    if "gradient" in wanted:
        yield "gradient", subject.adjoints()
    for word, make in {"jacobian": jacobian_of, "hvp": hvp_of, "hessian": hessian_of}.items():
        if word in wanted:
            yield word, make(subject, whole=whole is None or whole[word], scalar=scalar)


def filled(writer: FunctionWriter, recordings: Iterable[tuple[str, Recording]]) -> list[Tape]:
    """Have ``writer`` write all functions; the tapes that they were written from."""
    tapes = [writer.subject.tape]
    for word, found in recordings:
        if isinstance(found, Adjoints):
            writer.add_gradient(found)
        elif isinstance(found, Subject):
            writer.add_value()
        elif word == "hvp":
            writer.add_hvp(found)
        else:
            writer.add_matrix(word, found)
        tapes.append(found.tape)
    return tapes


def tested(request: Request, title: str, functions: Sequence[Function], subject: Subject) -> SelfTest | None:
    """The check that a file can run on itself, if that is wanted."""
    both = (each for each in functions if each.name == f"{title}_value_and_gradient")
    return self_test_of(next(both), subject.layout.wanted) if request.self_test else None
