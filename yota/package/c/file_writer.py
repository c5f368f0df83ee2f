"""What writers of the functions of one file share, in C, in CUDA and in languages that a table describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from yota.emit.c.c_plan import Tables
from yota.emit.c.c_standalone import Shared
from yota.emit.c.dialect import FOREIGN, language_of
from yota.emit.c.lines import Needs
from yota.emit.language import Language
from yota.emit.names import Names
from yota.ir.extents import Extent
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.package.c.interface import Parameter, argument, result
from yota.package.recorded_matrices import Recording
from yota.package.request import Request, called, summary
from yota.package.subject import Subject


class FileWriter:
    """Writes the functions of one file.

    title: name of the function itself in the file.
    inputs: their parameters.
    shared: what all functions rely on.
    summary: what the function's author says about it; empty if nothing.
    made: what functions compute from sizes, by the identity of their tapes.
    kernels: what functions launch, in CUDA.
    condition: what sizes must be, in words; empty if they are numbers.
    tapes, guards: what functions were made from, and decisions that they check.
    """

    further: tuple[str, ...] = ()
    """Further names that functions use themselves."""
    tables_in: Language | None = None
    """The language that tables of constants are written in, if that is another one."""

    def __init__(
        self,
        request: Request,
        subject: Subject,
        sizes: tuple[str, ...] = (),
        required: Callable[[Extent], None] = lambda number: None,
    ) -> None:
        self.request, self.subject, self.sizes = request, subject, sizes
        self.language = language_of(request.target)
        self.file_names = self.language.file_names()
        self.title = self.file_names.fresh(called(request.wish))
        self.summary = summary(request.call.function)
        needs = Needs(required=required, language=self.language)
        self.shared = Shared(self.file_names, needs, Tables(self.file_names, self.tables_in or self.language))
        self.inputs: tuple[Parameter, ...] = ()
        names = self.names(self.title, *self.further)
        self.inputs = tuple(
            argument(leaf, subject.tape.types[entry.variable], names, self.language)
            for leaf, entry in zip(subject.arguments.leaves, subject.tape.inputs, strict=False)
        )
        self.made: dict[int, Any] = {}
        self.functions: list[Any] = []
        self.kernels: list[Any] = []
        self.tapes: list[Tape] = [subject.tape]
        self.guards = subject.tape.guards
        self.condition = ""
        self.test: Any = None

    def fill(self, recordings: Iterable[tuple[str, Recording]]) -> None:
        """Write all functions, and what the request wants beside them."""
        for word, found in recordings:
            self.add(word, found)
            self.tapes += [found.tape] if word != "value" else []
        if self.request.self_test:
            self.test = self.self_test()

    def add(self, word: str, found: Recording) -> None:
        """Write a function."""
        raise NotImplementedError

    def self_test(self) -> Any:
        """The check of the function that gives value and gradient."""
        raise NotImplementedError

    def names(self, function: str, *known: str) -> Names:
        """Names for a function, beside its parameters."""
        return self.language.names(function, [*FOREIGN, *self.sizes, *(each.name for each in self.inputs), *known])

    def result(self, name: str, what: str, type: TensorType, names: Names) -> Parameter:
        """A parameter that is written to."""
        return result(name, what, type, names, self.language)

    def values(self, tape: Tape, names: Names) -> list[Parameter]:
        """The results of the function itself."""
        many = len(self.subject.tape.outputs) > 1
        outputs = enumerate(tape.outputs[: len(self.subject.tape.outputs)])
        return [
            self.result(f"value_{number}" if many else "value", "value", tape.types[output], names)
            for number, output in outputs
        ]

    def gradients(self, names: Names) -> list[Parameter]:
        """The results of its gradient."""
        by = [self.inputs[leaf] for leaf in self.subject.layout.wanted]
        return [
            self.result(
                f"gradient{f'_{each.name}' if len(by) > 1 else ''}", f"gradient by {each.name}", each.type, names
            )
            for each in by
        ]
