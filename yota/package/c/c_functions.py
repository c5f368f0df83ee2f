"""What writers of the functions of one file share, in each language; and those of C: value, gradient, and matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from yota.emit.c.c_plan import Tables
from yota.emit.c.c_standalone import Shared, body_of
from yota.emit.c.dialect import FOREIGN, language_of
from yota.emit.c.lines import Needs
from yota.emit.c.statements import Sizes
from yota.emit.language import Language, filled
from yota.emit.names import Names
from yota.emit.tree import Assign, Fill, Rows, Statement
from yota.errors import CodegenError
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize import inline
from yota.optimize.pipeline import run
from yota.package.c.interface import (
    Function,
    Parameter,
    SelfTest,
    SizedCall,
    argument,
    documented,
    result,
    self_test_of,
)
from yota.package.recorded_matrices import Derivative, Recording, recorded
from yota.package.request import Request, called, summary
from yota.package.subject import Subject, subject_of
from yota.rules.registry import registry
from yota.run.scalar_code import short_gradient, short_value
from yota.transform.reverse.backward import Adjoints


class FileWriter:
    """Writes the functions of one file.

    summary: what the function's author says about it; empty if nothing.
    kernels: what functions launch, in CUDA.
    condition: what sizes must be, in words; empty if they are numbers.
    tapes, guards: what functions were made from, and decisions that they check.
    """

    further: tuple[str, ...] = ()
    """Further names that functions use themselves."""
    tables_in: Language | None = None
    """The language that tables of constants are written in, if that is another one."""

    def __init__(self, request: Request, subject: Subject, sizes: tuple[str, ...] = ()) -> None:
        self.request, self.subject, self.sizes = request, subject, sizes
        self.language = language_of(request.target)
        self.file_names = self.language.file_names()
        self.title = self.file_names.fresh(called(request.wish))
        self.summary = summary(request.call.function)
        needs = Needs(language=self.language)
        self.shared = Shared(self.file_names, needs, Tables(self.file_names, self.tables_in or self.language))
        self.inputs: tuple[Parameter, ...] = ()
        names = self.names(self.title, *self.further)
        self.inputs = tuple(
            argument(leaf, subject.tape.types[entry.variable], names, self.language)
            for leaf, entry in zip(subject.arguments.leaves, subject.tape.inputs, strict=False)
        )
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

    def sources(self) -> dict[str, str]:
        """What each parameter of the function is."""
        return {each.name: each.source for each in self.inputs}

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
    writer = FunctionWriter(request, subject)
    writer.fill((word, recorded(subject, word)) for word in request.ordered)
    return writer


class FunctionWriter(FileWriter):
    """Writes the functions of one file, and holds all that its texts are put together from.

    call: where Python finds sizes.
    body_sizes: what bodies take from sizes.
    """

    functions: list[Function]
    body_sizes = Sizes()
    test: SelfTest | None
    call: SizedCall | None = None

    @property
    def _is_short(self) -> bool:
        """Whether scalar code is written with fewer operations, which is other code for each size."""
        return not self.request.strict and not self.sizes

    def add(self, word: str, found: Recording) -> None:
        """Write a function."""
        if isinstance(found, Adjoints):
            self.add_gradient(found)
        elif isinstance(found, Subject):
            self.add_value(found.tape)
        elif word == "hvp":
            self.add_hvp(found)
        else:
            self.add_matrix(word, found)

    def self_test(self) -> SelfTest:
        """The check of the function that gives value and gradient."""
        both = (each for each in self.functions if each.name == f"{self.title}_value_and_gradient")
        return self_test_of(next(both), self.subject.layout.wanted)

    def add_value(self, tape: Tape) -> None:
        """The function itself."""
        results = self.values(tape, self.names(self.title))
        tape = short_value(tape, self.subject.call.search) if self._is_short else tape
        self._add(self.title, self.summary or f"Value of {self.title}.", tape, self.inputs, results)

    def add_gradient(self, found: Adjoints) -> None:
        """Value and gradient, and the gradient alone."""
        leaves, tape, name = self.subject.layout.wanted, found.tape, self._name("value_and_gradient")
        names = self.names(name)
        (value,), slopes = self.values(self.subject.tape, names), self.gradients(names)
        cleared = [slope for slope, variable in zip(slopes, found.variables, strict=True) if variable is None]
        if self._is_short:
            given = [leaf for leaf, variable in zip(leaves, found.variables, strict=True) if variable is not None]
            tape = short_gradient(tape, given, registry(), self.subject.call.search)
        by = ", ".join(self.inputs[leaf].name for leaf in leaves)
        summary, results = f"Value of {self.title} and its gradient by {by}.", [value, *slopes]
        self._add(name, summary, tape, self.inputs, results, cleared=cleared)
        called = [*self.sizes, *(each.name for each in self.inputs), f"&{value.name}", *(each.name for each in slopes)]
        lines = (f"{value.kind.removesuffix('*')}{value.name};", *filled(f"return {name}({', '.join(called)});"))
        parameters = (*self.inputs, *slopes)
        text = self._documented(f"Gradient of {self.title} by {by}.", parameters)
        allocates = self.functions[-1].allocates
        self._put(
            Function(
                self._name("gradient"), parameters, _indented(lines), documentation=text, allocates=allocates,
                delegate=name,
            )
        )  # fmt: skip

    def add_matrix(self, word: str, found: Derivative) -> None:
        """A Jacobian or a Hessian: whole, or a row for each unit vector."""
        by = self.inputs[self.subject.layout.wanted[0]].name
        name, what = self._name(word), "Partial" if word == "jacobian" else "Second"
        summary = f"{what} derivatives of {self.title} by {by}."
        matrix = self.result(word, what.lower() + " derivatives", found.like, self.names(name))
        if found.extra is None:
            self._add(name, summary, found.tape, self.inputs, [matrix])
            return
        ready = (each for each in self.functions if word == "hessian" and each.name == f"{self.title}_hvp")
        row = next(ready, None) or self._row(word, found)
        self._add_rows(name, summary, matrix, row, found)

    def add_hvp(self, found: Derivative) -> None:
        """Second derivatives times a vector."""
        by = self.inputs[self.subject.layout.wanted[0]].name
        name = self._name("hvp")
        names = self.names(name)
        vector = self._vector(found, names)
        product = self.result("product", "second derivatives times v", found.row, names)
        summary = f"Second derivatives of {self.title} by {by}, times v."
        self._add(name, summary, found.tape, (*self.inputs, vector), [product])

    def _row(self, word: str, found: Derivative) -> Function:
        """The function that gives a product with the matrix from the left or, since Hessians are symmetric, either."""
        row = self._name(f"{word}_row")
        names = self.names(row)
        vector = self._vector(found, names)
        product = self.result("row", "row", found.row, names)
        self._add(row, "", found.tape, (*self.inputs, vector), [product], public=False)
        return self.functions[-1]

    def _vector(self, found: Derivative, names: Names) -> Parameter:
        """The last parameter of a product."""
        assert isinstance(found.extra, Leaf)
        entry = found.tape.inputs[len(self.inputs)]
        return argument(found.extra, found.tape.types[entry.variable], names, self.language)

    def _add_rows(self, name: str, summary: str, matrix: Parameter, row: Function, found: Derivative) -> None:
        vector, product = row.inputs[-1], row.results[0]
        size, inputs = vector.type.size, tuple(each.name for each in self.inputs)
        names = self.names(name, matrix.name)
        heap = int(size) * vector.type.dtype.itemsize > self.body_sizes.on_stack
        rows = Rows(
            self.language.type(vector.type.dtype), names.fresh("unit"), names.fresh("row"), size, product.type.size,
            heap, row.name, (*self.sizes, *inputs), matrix.name,
        )  # fmt: skip
        lines, parameters = _indented(self.language.printed([rows])), (*self.inputs, matrix)
        text, allocates = self._documented(summary, parameters), heap or row.allocates
        memory = (size, *row.memory) if heap else row.memory
        self._put(Function(name, parameters, lines, documentation=text, allocates=allocates, memory=memory))

    def _add(
        self,
        name: str,
        summary: str,
        tape: Tape,
        inputs: Sequence[Parameter],
        results: Sequence[Parameter],
        *,
        cleared: Sequence[Parameter] = (),
        public: bool = True,
    ) -> None:
        """A function with a body of its own."""
        strict, parameters = self.request.strict, (*inputs, *results)
        taken = [each.name for each in inputs]
        given = [each.name for each in results if each not in cleared]
        tape = run(inline.run(tape, strict=True, alone=not strict), strict=strict)
        body = body_of(tape, name, taken, given, self.shared, strict=strict, sizes=self.body_sizes)
        text = self._documented(summary, parameters, body.operations) if public else ()
        lines = _indented([*self.language.printed(map(self._cleared, cleared)), *body.lines])
        found = Function(name, parameters, lines, body.kernels, body.pieces, text, public, body.allocates, body.looks)
        self._put(replace(found, memory=body.memory))

    def _put(self, function: Function) -> None:
        self.functions.append(replace(function, sizes=self.sizes))

    def _name(self, ending: str) -> str:
        return self.file_names.derived(self.title, ending)

    def _documented(self, summary: str, parameters: Sequence[Parameter], operations: str = "") -> tuple[str, ...]:
        return documented(summary, parameters, operations, self.sizes, self.language)

    def _cleared(self, slope: Parameter) -> Statement:
        """The gradient by something that the value does not depend on."""
        zero = self.language.literal(0, slope.type.dtype)
        if slope.type.shape:
            return Fill(slope.name, slope.type.size, zero, True)
        return Assign(self.language.result(slope.name), zero)


def _indented(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"    {line}" if line and line != "done:" else line for line in lines)
