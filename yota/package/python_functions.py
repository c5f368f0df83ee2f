"""The public functions of a standalone module, each with its kernel: value, gradient, and matrices of derivatives."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from yota.emit.names import Names
from yota.emit.numpy_literals import dtype_text
from yota.emit.render import render_lines
from yota.ir.inputs import Leaf
from yota.ir.plain_text import docstring
from yota.ir.specs import REST
from yota.ir.tape import Guard, Tape
from yota.ir.types import TensorType
from yota.package.python_kernel import Kernel, SelfTest, complex_kernel, kernel_of, self_test_of, sized_kernel
from yota.package.recorded_matrices import Derivative, Recording, recorded
from yota.package.signature import Parameter, class_name, described, hint, parameters, shape_of
from yota.package.size_recordings import Sized
from yota.package.subject import Subject
from yota.package.varying import Constants, Varying
from yota.rules.registry import registry
from yota.run.scalar_code import short_gradient, short_value
from yota.transform.reverse.backward import Adjoints

_COLUMNS = 76
_Shape = Sequence[int | str]


@dataclass(frozen=True, slots=True)
class Function:
    """A public function, ready for a template: texts only."""

    name: str
    parameters: str
    returns: str
    summary: str
    documentation: Sequence[str]
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordClass:
    """A named tuple of gradients."""

    name: str
    fields: tuple[str, ...]


class FunctionWriter:
    """Writes the functions of one module, and holds all that its text is put together from.

    summary: what the user's docstring says first; empty if nothing.
    subject: the recorded function.
    found: the function at several sizes, where sizes have names; then ``subject`` is for all of them.
    rest: the size that is the number of elements in further axes; empty if there are none.
    tapes, guards: what functions were made from, and decisions that they check.
    """

    def __init__(self, name: str, summary: str, subject: Subject, found: Sized | None, rest: str, strict: bool) -> None:
        self.name, self.summary, self.subject, self.found = name, summary, subject, found
        self.rest, self.strict = rest, strict
        self.sizes = found.samples.names if found else ()
        self.constants = Constants()
        self.kernels: list[Kernel] = []
        self.functions: list[Function] = []
        self.records: list[RecordClass] = []
        self.tapes: list[Tape] = [self.subject.tape]
        self.guards: Sequence[Guard] = ()
        self.test: SelfTest | None = None
        own = [name, *(f"{name}_{each}" for each in ("gradient", "value_and_gradient", "jacobian", "hessian", "hvp"))]
        # A named tuple has methods of these names.
        fields = ("count", "index") if len(self.subject.layout.wanted) > 1 else ()
        types = [subject.tape.types[entry.variable] for entry in subject.tape.inputs]
        self.parameters = self._parameters(
            subject.arguments.leaves, types, (*own, f"{class_name(name)}Gradient", *fields)
        )
        self.wanted = [self.parameters[leaf] for leaf in self.subject.layout.wanted]

    def fill(self, wanted: Sequence[str], *, self_test: bool) -> None:
        """Write the wanted functions, in their order."""
        for word in wanted:
            if word == "value":
                self.add_value()
            elif word == "gradient":
                self.add_gradient()
            elif word == "hvp":
                self.add_hvp()
            else:
                self.add_matrix(word)
        # Derivatives of loops add guards behind those of the value.
        self.guards = max((each.guards for each in self.tapes), key=len)
        if self_test:
            kernel = None if self.sizes else complex_kernel(self.subject, f"_{self.name}_complex", self.constants)
            self.kernels += [kernel] if kernel else []
            self.test = self_test_of(self.subject, self.name, self.parameters, self.sizes, kernel)

    def add_value(self) -> None:
        """The function itself, without derivative."""
        found, varying = self._recorded("value")
        tape = found.tape
        if not self.found and not self.strict:
            tape = short_value(tape, self.subject.call.search)
        kernel = self._kernel(f"_{self.name}", tape, varying)
        types = [tape.types[output] for output in tape.outputs]
        hints = list(map(hint, types))
        returns = hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
        (value,) = self._free("value")
        texts = [value] if len(types) == 1 else [f"{value}[{number}]" for number in range(len(types))]
        whole = [self._restored(text, shape_of(type)) for text, type in zip(texts, types, strict=True)]
        body = (
            f"{value}: {returns} = {self._called(kernel)}",
            f"return {value if whole == texts else ', '.join(whole)}",
        )
        results = [(f"value{'' if len(types) == 1 else place}", described(type)) for place, type in enumerate(types)]
        summary = self.summary or f"Value of {self.name}."
        self._add(self.name, returns, summary, body, results, operations=kernel.operations)

    def add_gradient(self) -> None:
        """Value with gradient, and gradient alone."""
        leaves, wanted = self.subject.layout.wanted, self.wanted
        both = f"{self.name}_value_and_gradient"
        found, varying = self._recorded("gradient")
        assert isinstance(found, Adjoints)
        present = [variable is not None for variable in found.variables]
        tape = found.tape
        if not self.found and not self.strict:
            given = [leaf for leaf, there in zip(leaves, present, strict=True) if there]
            tape = short_gradient(tape, given, registry(), self.subject.call.search)
        kernel = self._kernel(f"_{both}", tape, varying)
        record, single = f"{class_name(self.name)}Gradient", len(wanted) == 1
        if not single:
            held = tuple(f"{each.name}: {hint(each.type)}" for each in wanted)
            self.records.append(RecordClass(record, held))
        value, gradient = self.subject.tape.types[self.subject.tape.outputs[0]], record
        kind, by = record, ", ".join(each.name for each in wanted)
        if single:
            gradient, kind = hint(wanted[0].type), described(wanted[0].type, wanted[0].shape)
        count = iter(range(1, 1 + sum(present)))
        (results,) = self._free("results")
        parts = [
            _in_shape(f"{results}[{next(count)}]", each) if there else _zero(each)
            for each, there in zip(wanted, present, strict=True)
        ]
        plain = all(present) and not any(REST in each.shape for each in wanted)
        whole = parts[0] if single else f"{record}({f'*{results}[1:]' if plain else ', '.join(parts)})"
        call = self._called(kernel)
        body = (
            f"{results}: tuple[Any, ...] = {call if any(present) else f'({call},)'}",
            f"return {results}[0], {whole}",
        )
        summary = _shortened(f"Gradient of {self.name} by {by}.")
        names = ", ".join(each.name for each in self.parameters)
        alone = (f"return {both}({names})[1]",)
        self._add(f"{self.name}_gradient", gradient, summary, alone, [("gradient", kind)], opening=False)
        summary = _shortened(f"Value of {self.name} and its gradient by {by}.")
        told = [("value", described(value)), ("gradient", kind)]
        self._add(both, f"tuple[{hint(value)}, {gradient}]", summary, body, told, operations=kernel.operations)

    def add_hvp(self) -> None:
        """The second derivatives times a vector."""
        found, kernel = self._matrix("hvp", f"_{self.name}_hvp")
        assert found.extra is not None
        by, type = self.wanted[0], found.tape.types[found.tape.inputs[found.extra.argument].variable]
        extra = self._parameters([found.extra], [type], [each.name for each in self.parameters])
        (product,) = self._free("product", extra=extra)
        body = (
            f"{product}: {hint(by.type)} = {self._called(kernel, extra)}",
            f"return {self._restored(product, shape_of(found.row))}",
        )
        summary = f"Second derivatives of {self.name} by {by.name}, times {extra[0].name}."
        told = [("product", described(by.type, by.shape))]
        self._add(f"{self.name}_hvp", hint(by.type), summary, body, told, kernel.operations, extra)

    def add_matrix(self, what: str) -> None:
        """The partial derivatives of each element of the result, or the second derivatives."""
        name = f"{self.name}_{what}"
        found, kernel = self._matrix(what, f"_{name}")
        like = found.like
        shape = shape_of(like)
        (matrix,) = self._free("matrix")
        if found.extra is None:
            made = self._restored(self._called(kernel), shape)
            lines, work = [f"{matrix}: {hint(like)} = {made}"], kernel.operations
        else:
            rows = shape[: len(shape) - len(found.row.shape)]
            lines, work = self._loop(kernel, rows, shape, like), f"for each row {kernel.operations}"
        which = "Partial" if what == "jacobian" else "Second"
        summary = f"{which} derivatives of {self.name} by {self.wanted[0].name}."
        told = [("matrix", described(like, [REST if each == self.rest else each for each in shape]))]
        self._add(name, hint(like), summary, (*lines, f"return {matrix}"), told, work)

    def _matrix(self, what: str, name: str) -> tuple[Derivative, Kernel]:
        """Derivatives, and the kernel that computes them or their product with a vector."""
        found, varying = self._recorded(what)
        assert isinstance(found, Derivative)
        if what == "hessian" and found.extra is not None:
            ready = next((kernel for kernel in self.kernels if kernel.name == f"_{self.name}_hvp"), None)
            if ready is not None:
                return found, ready
        is_row = found.extra is not None and what != "hvp"
        return found, self._kernel(f"{name}_row" if is_row else name, found.tape, varying)

    def _loop(self, kernel: Kernel, rows: _Shape, shape: _Shape, like: TensorType) -> list[str]:
        """A matrix whose rows come from one kernel, called with each unit vector."""
        dtype, numbers = dtype_text(like.dtype), [each for each in rows if isinstance(each, int)]
        plain = len(numbers) == len(rows)
        count = str(math.prod(numbers)) if plain else self._extent(" * ".join(f"({each})" for each in rows))
        unit, units, found, matrix = self._free("unit", "units", "rows", "matrix")
        given = [*(each.name for each in self.parameters), unit, *map(self._extent, kernel.sizes)]
        cast = "" if dtype == "np.float64" else f", dtype={dtype}"
        made = f"np.array({found}, {dtype})"
        reshaped = f"{made}.reshape({', '.join(map(self._extent, shape))})"
        return [
            *(f"{each.name} = {each.checked}" for each in self.parameters),
            f"{units} = np.eye({count}{cast}).reshape({', '.join([count, *map(self._extent, rows)])})",
            f"{found} = [{kernel.name}({', '.join(given)}) for {unit} in {units}]",
            f"{matrix}: {hint(like)} = {self._restored(made, shape) if self.rest in shape else reshaped}",
        ]

    def _recorded(self, word: str) -> tuple[Recording, tuple[Varying, ...]]:
        """What a function is written from, and constants that are its last inputs."""
        valued = self.strict and word in ("value", "gradient")
        if self.found:
            found, varying = self.found.derived(word, valued=valued)
        else:
            found, varying = recorded(self.subject, word), ()
            found = replace(found, tape=self.subject.valued(found.tape, valued))
        if word != "value":
            self.tapes.append(found.tape)
        return found, varying

    def _kernel(self, name: str, tape: Tape, varying: Sequence[Varying]) -> Kernel:
        """The kernel that computes a tape, whose last inputs are ``varying`` where sizes have names."""
        if self.found:
            self.kernels.append(sized_kernel(self.found, tape, varying, name, self.constants))
        else:
            self.kernels.append(kernel_of(tape, name, self.constants, strict=self.strict))
        return self.kernels[-1]

    def _parameters(
        self, leaves: Sequence[Leaf], types: Sequence[TensorType], reserved: Sequence[str]
    ) -> tuple[Parameter, ...]:
        shapes = list(map(shape_of, types[: len(leaves)]))
        return parameters(leaves, (*reserved, *(["sizes"] if self.found else [])), shapes, self.rest)

    def _extent(self, extent: int | str) -> str:
        """An extent as the body of a function spells it."""
        known = {name: f'sizes["{name}"]' for name in self.sizes}
        known |= {self.rest: f'math.prod(sizes["{REST}"])'} if self.rest else {}
        return re.sub(r"\w+", lambda word: known.get(word[0], word[0]), str(extent))

    def _restored(self, text: str, shape: _Shape) -> str:
        """What ``text``, an array of this ``shape``, is with further axes in the place of the one for them."""
        if not self.rest or self.rest not in shape:
            return text
        extents = [f'*sizes["{REST}"]' if each == self.rest else self._extent(each) for each in shape]
        return f"{text}.reshape(({', '.join(extents)},)){'[()]' if len(shape) == 1 else ''}"

    def _free(self, *words: str, extra: Sequence[Parameter] = ()) -> list[str]:
        """The words as names of variables beside the parameters."""
        names = Names(each.name for each in (*self.parameters, *extra))
        return [names.fresh(word) for word in words]

    def _called(self, kernel: Kernel, extra: Sequence[Parameter] = ()) -> str:
        # Arguments are evaluated from left to right: the sizes are known when they are asked for.
        checked = [each.checked for each in (*self.parameters, *extra)]
        return f"{kernel.name}({', '.join([*checked, *map(self._extent, kernel.sizes)])})"

    def _add(
        self,
        name: str,
        returns: str,
        summary: str,
        body: Sequence[str],
        results: Sequence[tuple[str, str]],
        operations: str = "",
        extra: Sequence[Parameter] = (),
        opening: bool = True,
    ) -> None:
        given = (*self.parameters, *extra)
        header = ", ".join(f"{each.name}: {each.hint}" for each in given)
        sizes = [f"sizes: dict[str, {'Any' if self.rest else 'int'}] = {{}}"] if self.sizes and opening else []
        documentation = render_lines(
            "module/documentation.jinja",
            given=[_documented(each) for each in given],
            results=results,
            shaped=any(each.type.shape for each in given),
            guarded=bool(self.subject.tape.guards),
            operations=operations,
        )
        self.functions.append(Function(name, header, returns, summary, documentation, (*sizes, *body)))


def _documented(given: Parameter) -> tuple[str, str, str]:
    """A parameter, what it may be, and what the function calls it if that is another name."""
    kind = described(given.type, given.shape).replace("ndarray", "array_like", 1)
    return given.name, kind, docstring(given.source) if given.source != given.name else ""


def _in_shape(text: str, parameter: Parameter) -> str:
    """The gradient by ``parameter`` in its shape."""
    if REST not in parameter.shape:
        return text
    return f"{text}.reshape(np.shape({parameter.name})){'[()]' if len(parameter.shape) == 1 else ''}"


def _zero(parameter: Parameter) -> str:
    type = parameter.type
    if type.weak:
        return "0.0" if type.dtype.kind == "f" else "0j"
    named = any(isinstance(extent, str) for extent in parameter.shape)
    shape = f"np.shape({parameter.name})" if named else str(type.shape)
    return f"np.zeros({shape}, np.{type.dtype.name})" + ("" if type.shape else "[()]")


def _shortened(text: str) -> str:
    return text if len(text) <= _COLUMNS else text.partition(" by ")[0] + "."
