"""What the functions of a file are written from, and the functions of a C file for arguments of fixed sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from yota.emit.c.c_standalone import Shared
from yota.emit.c.dialect import language_of
from yota.emit.c.lines import Needs
from yota.emit.c.parts import Tables
from yota.errors import CodegenError
from yota.package.c.c_functions import FunctionWriter, Recording
from yota.package.c.interface import arguments_of, parameter_names
from yota.package.provenance import called, summary
from yota.package.recorded_matrices import hessian_of, hvp_of, jacobian_of
from yota.package.request import Request
from yota.package.subject import Subject, subject_of

_MOST_STRAIGHT = 20_000
"""Ops up to which a function is written step by step where C cannot say its loops."""


def written(request: Request) -> FunctionWriter:
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


def _written(request: Request, subject: Subject) -> FunctionWriter:
    language = language_of(request.target)
    names = language.file_names()
    title = names.fresh(called(request.wish))
    inputs = arguments_of(subject.arguments.leaves, parameter_names(title, language=language), language=language)
    shared = Shared(names, Needs(language=language), Tables(names, language))
    writer = FunctionWriter(title, subject, inputs, summary(request.call.function), shared, request.strict)
    writer.fill(recorded(subject, request.wanted, scalar=True), request)
    return writer


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
