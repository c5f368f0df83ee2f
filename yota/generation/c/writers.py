"""Writers of C functions at one of several sizes, from tapes that differ in nothing but sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yota.codegen.c.sizes import Sizes
from yota.codegen.c.standalone import Body, Shared, body_of
from yota.generation.c.functions import FunctionWriter
from yota.generation.c.interface import Parameter
from yota.generation.provenance import summary
from yota.generation.request import Request
from yota.generation.subject import Subject
from yota.generation.varying import Separated
from yota.ir.tape import Tape
from yota.passes.pipeline import run

__all__ = ["ON_STACK", "Prepared", "Reading", "Writing"]

ON_STACK = 128
"""Bytes of an array that may stand on the stack: none whose extent is a size has so few."""


class Reading(FunctionWriter):
    """Notes the tapes of functions, and writes none."""

    def __init__(self, title: str, subject: Subject, inputs: tuple[Parameter, ...], shared: Shared) -> None:
        super().__init__(title, subject, inputs, "", shared, False)
        self.tapes: dict[str, Tape] = {}

    def body(self, name: str, tape: Tape, inputs: Sequence[str], results: Sequence[str]) -> Body:
        """No body."""
        self.tapes[name] = tape
        return Body((), (), (), False, "")


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a function is written from: a tape for each sample, and what it computes from sizes."""

    separated: Separated
    sizes: Sizes


class Writing(FunctionWriter):
    """Writes the functions of one sample."""

    on_stack = ON_STACK

    def __init__(
        self,
        title: str,
        subject: Subject,
        inputs: tuple[Parameter, ...],
        request: Request,
        shared: Shared,
        prepared: Mapping[str, Prepared],
        number: int,
    ) -> None:
        super().__init__(title, subject, inputs, summary(request.call.function), shared, request.strict)
        self.prepared, self.number = prepared, number

    def body(self, name: str, tape: Tape, inputs: Sequence[str], results: Sequence[str]) -> Body:
        """The body, from the tape without constants that depend on sizes."""
        prepared = self.prepared[name]
        tape = run(prepared.separated.tapes[self.number], strict=self.strict)
        return body_of(tape, name, inputs, results, self.shared, strict=self.strict, sizes=prepared.sizes)
