"""The functions of a C file: value, gradient, both, and matrices of derivatives, each with its body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from yota.emit.c.c_plan import KernelPlan
from yota.emit.c.c_standalone import Body, Shared, body_of
from yota.emit.c.dialect import FOREIGN
from yota.emit.c.statements import Sizes
from yota.emit.language import filled
from yota.emit.names import Names
from yota.emit.tree import Assign, Fill, Rows, Statement
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.optimize import inline
from yota.optimize.pipeline import run
from yota.package.c.c_selftest import SelfTest, self_test_of
from yota.package.c.extension import SizedCall, called_from_python
from yota.package.c.interface import Function, Parameter, arguments_of, documented, result
from yota.package.recorded_matrices import Derivative
from yota.package.request import Request
from yota.package.subject import Subject
from yota.rules.registry import registry
from yota.run.scalar_code import short_gradient, short_value
from yota.transform.reverse.backward import Adjoints

Recording: TypeAlias = "Subject | Adjoints | Derivative"
"""What a function is written from."""


class FunctionWriter:
    """Writes the functions of one file, and holds all that its texts are put together from.

    title: name of the function itself in the file.
    inputs: its parameters.
    summary: what its author says about it; empty if nothing.
    sizes: names of the sizes that functions take.
    condition: what sizes must be, in words; empty if they are numbers.
    call: where Python finds sizes.
    test: the check that the file can run on itself.
    wrapped: functions as Python calls them.
    tapes, guards: what functions were made from, and decisions that they check.
    """

    sizes: tuple[str, ...] = ()
    condition = ""
    call: SizedCall | None = None
    test: SelfTest | None = None
    wrapped: tuple[KernelPlan, ...] = ()

    def __init__(
        self, title: str, subject: Subject, inputs: tuple[Parameter, ...], summary: str, shared: Shared, strict: bool
    ) -> None:
        self.made: dict[int, Sizes] = {}
        self.title, self.subject, self.inputs, self.summary = title, subject, inputs, summary
        self.shared, self.strict, self.language = shared, strict, shared.needs.language
        self.functions: list[Function] = []
        self.tapes: list[Tape] = []
        self.guards = subject.tape.guards

    def fill(self, recordings: Iterable[tuple[str, Recording]], request: Request) -> None:
        """Write all functions, and what the request wants beside them."""
        self.tapes.append(self.subject.tape)
        for word, found in recordings:
            if isinstance(found, Adjoints):
                self.add_gradient(found)
            elif isinstance(found, Subject):
                self.add_value()
            elif word == "hvp":
                self.add_hvp(found)
            else:
                self.add_matrix(word, found)
            self.tapes.append(found.tape)
        self.wrapped = called_from_python(self.functions) if request.extension else ()
        if request.self_test:
            both = (each for each in self.functions if each.name == f"{self.title}_value_and_gradient")
            self.test = self_test_of(next(both), self.subject.layout.wanted)

    def _names(self, name: str) -> Names:
        return self.language.names(name, [*FOREIGN, *self.sizes, *(each.name for each in self.inputs)])

    def _name(self, ending: str) -> str:
        return self.shared.names.derived(self.title, ending)

    def add_value(self) -> Tape:
        """The function itself."""
        tape = self.subject.tape
        names = self._names(self.title)
        many = len(tape.outputs) > 1
        results = [
            self._result(f"value_{number}" if many else "value", "value", tape.types[output], names)
            for number, output in enumerate(tape.outputs)
        ]
        written = tape if self.strict or self.sizes else short_value(tape, self.subject.call.search)
        self._add(self.title, self.summary or f"Value of {self.title}.", written, self.inputs, results)
        return tape

    def _result(self, name: str, what: str, type: TensorType, names: Names) -> Parameter:
        return result(name, what, type, names, language=self.language)

    def _documented(self, summary: str, parameters: Sequence[Parameter], operations: str = "") -> tuple[str, ...]:
        return documented(summary, parameters, operations, self.sizes, self.language)

    def _cleared(self, slope: Parameter) -> Statement:
        """The gradient by something that the value does not depend on."""
        zero = self.language.literal(0, slope.type.dtype)
        if slope.type.shape:
            return Fill(slope.name, slope.type.size, zero, True)
        return Assign(self.language.result(slope.name), zero)

    def _made(self, tape: Tape) -> Sizes:
        return self.made.get(id(tape), Sizes())

    def add_gradient(self, found: Adjoints) -> Tape:
        """Value and gradient, and the gradient alone."""
        leaves = self.subject.layout.wanted
        tape = self.subject.tape
        name = self._name("value_and_gradient")
        names = self._names(name)
        value = self._result("value", "value", tape.types[tape.outputs[0]], names)
        by = [self.inputs[leaf] for leaf in leaves]
        several = len(by) > 1
        slopes = [
            self._result(
                f"gradient_{each.name}" if several else "gradient", f"gradient by {each.name}", each.type, names
            )
            for each in by
        ]
        present = [slope for slope, variable in zip(slopes, found.variables, strict=True) if variable is not None]
        zeros = self.language.printed([self._cleared(slope) for slope in slopes if slope not in present])
        listed = ", ".join(each.name for each in by)
        results = [value, *slopes]
        given = [leaf for leaf, variable in zip(leaves, found.variables, strict=True) if variable is not None]
        self._add(
            name,
            f"Value of {self.title} and its gradient by {listed}.",
            found.tape
            if self.strict or self.sizes
            else short_gradient(found.tape, given, registry(), self.subject.call.search),
            self.inputs,
            results,
            computed=[value, *present],
            opening=zeros,
        )
        alone = self._name("gradient")
        called = ", ".join(
            [*self.sizes, *(each.name for each in self.inputs), f"&{value.name}", *(each.name for each in slopes)]
        )
        lines = (f"{value.kind.removesuffix('*')}{value.name};", *filled(f"return {name}({called});"))
        parameters = (*self.inputs, *slopes)
        text = self._documented(f"Gradient of {self.title} by {listed}.", parameters)
        allocates = self.functions[-1].allocates
        self._put(Function(alone, parameters, _indented(lines), documentation=text, allocates=allocates, delegate=name))
        return found.tape

    def add_matrix(self, word: str, found: Derivative) -> Tape:
        """A Jacobian or a Hessian: whole, or a row for each unit vector."""
        by = self.inputs[self.subject.layout.wanted[0]].name
        name = self._name(word)
        what = "Partial" if word == "jacobian" else "Second"
        summary = f"{what} derivatives of {self.title} by {by}."
        matrix = self._result(word, what.lower() + " derivatives", found.like, self._names(name))
        if found.extra is None:
            self._add(name, summary, found.tape, self.inputs, [matrix])
            return found.tape
        ready = next((each for each in self.functions if word == "hessian" and each.name == f"{self.title}_hvp"), None)
        row = ready or self._row(name, found)
        self._add_rows(name, summary, matrix, row, found)
        return found.tape

    def add_hvp(self, found: Derivative) -> Tape:
        """Second derivatives times a vector."""
        by = self.inputs[self.subject.layout.wanted[0]].name
        name = self._name("hvp")
        names = self._names(name)
        assert found.extra is not None
        vector = self._vector(found.extra, found.tape, names)
        product = self._result("product", "second derivatives times v", found.like, names)
        summary = f"Second derivatives of {self.title} by {by}, times v."
        self._add(name, summary, found.tape, (*self.inputs, vector), [product])
        return found.tape

    def _vector(self, leaf: Leaf, tape: Tape, names: Names) -> Parameter:
        """The last parameter of a product."""
        (found,) = arguments_of([leaf], names, language=self.language)
        return replace(found, type=tape.types[tape.inputs[len(self.inputs)].variable])

    def _row(self, name: str, found: Derivative) -> Function:
        """The function that gives a product with the matrix from the left or, since Hessians are symmetric, either."""
        row = self._name(f"{name.removeprefix(self.title).strip('_')}_row")
        names = self._names(row)
        assert found.extra is not None
        vector = self._vector(found.extra, found.tape, names)
        product = self._result("row", "row", found.tape.types[found.tape.outputs[0]], names)
        self._add(row, "", found.tape, (*self.inputs, vector), [product], public=False)
        return self.functions[-1]

    def _add_rows(self, name: str, summary: str, matrix: Parameter, row: Function, found: Derivative) -> None:
        vector, product = row.inputs[-1], row.results[0]
        size, inputs = vector.type.size, tuple(each.name for each in self.inputs)
        names = self.language.names(name, [*FOREIGN, *self.sizes, *inputs, matrix.name])
        heap = size * vector.type.dtype.itemsize > self._made(found.tape).on_stack
        rows = Rows(
            self.language.type(vector.type.dtype), names.fresh("unit"), names.fresh("row"), size, product.type.size,
            heap, row.name, (*self.sizes, *inputs), matrix.name,
        )  # fmt: skip
        lines = self.language.printed([rows])
        parameters = (*self.inputs, matrix)
        text = self._documented(summary, parameters)
        allocates = heap or row.allocates
        memory = (size, *row.memory) if heap else row.memory
        self._put(Function(name, parameters, _indented(lines), documentation=text, allocates=allocates, memory=memory))

    def _add(
        self,
        name: str,
        summary: str,
        tape: Tape,
        inputs: Sequence[Parameter],
        results: Sequence[Parameter],
        *,
        computed: Sequence[Parameter] | None = None,
        opening: Sequence[str] = (),
        public: bool = True,
    ) -> None:
        written = [each.name for each in (results if computed is None else computed)]
        body = self.body(name, tape, [each.name for each in inputs], written)
        parameters = (*inputs, *results)
        text = self._documented(summary, parameters, body.operations) if public else ()
        lines = _indented([*opening, *body.lines])
        found = Function(name, parameters, lines, body.kernels, body.pieces, text, public, body.allocates, body.looks)
        self._put(replace(found, memory=body.memory))

    def _put(self, function: Function) -> None:
        self.functions.append(replace(function, sizes=self.sizes))

    def body(self, name: str, tape: Tape, inputs: Sequence[str], results: Sequence[str]) -> Body:
        """The body of one function."""
        sizes = self._made(tape)
        tape = run(inline.run(tape, strict=True, alone=not self.strict), strict=self.strict)
        return body_of(tape, name, inputs, results, self.shared, strict=self.strict, sizes=sizes)


def _indented(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"    {line}" if line and line != "done:" else line for line in lines)
