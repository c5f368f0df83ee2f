"""The public functions of a standalone module: value, gradient, and both."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from yota.emit.names import Names
from yota.ir.plain_text import docstring
from yota.ir.specs import REST
from yota.ir.types import TensorType
from yota.package.python_kernel import Kernel
from yota.package.signature import Parameter, described, hint

_COLUMNS = 76


@dataclass(frozen=True, slots=True)
class Function:
    """A public function, ready for a template: texts only."""

    name: str
    parameters: str
    returns: str
    summary: str
    documentation: tuple[str, ...]
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordClass:
    """A named tuple of gradients."""

    name: str
    summary: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Documented:
    """What all functions of a module have in common.

    name: name of the function in the module.
    summary: what the user's docstring says first; empty if nothing.
    guarded: whether the tape has preconditions.
    sizes: names of sizes that the arguments give.
    rest: the one of them that is the number of elements in further axes; empty if there are none.
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    guarded: bool
    sizes: tuple[str, ...] = ()
    rest: str = ""

    @property
    def opening(self) -> tuple[str, ...]:
        """Statements ahead of the call of a kernel."""
        return (f"sizes: dict[str, {'Any' if self.rest else 'int'}] = {{}}",) if self.sizes else ()

    def extent(self, extent: int | str) -> str:
        """An extent as the body of a function spells it."""
        tree = ast.parse(str(extent), mode="eval")
        return ast.unparse(_Spelled(self).visit(tree))

    def restored(self, text: str, shape: Sequence[int | str]) -> str:
        """What ``text``, an array of this ``shape``, is with further axes in the place of the one for them."""
        if not self.rest or self.rest not in shape:
            return text
        extents = [f'*sizes["{REST}"]' if each == self.rest else self.extent(each) for each in shape]
        return f"{text}.reshape(({', '.join(extents)},)){'[()]' if len(shape) == 1 else ''}"

    def free(self, *words: str, extra: Sequence[Parameter] = ()) -> list[str]:
        """The words as names of variables beside the parameters."""
        names = Names(each.name for each in (*self.parameters, *extra))
        return [names.fresh(word) for word in words]

    def header(self, extra: Sequence[Parameter] = ()) -> str:
        """Parameters as they stand in ``def``."""
        return ", ".join(f"{each.name}: {each.hint}" for each in (*self.parameters, *extra))

    def checked(self, kernel: Kernel, extra: Sequence[Parameter] = ()) -> str:
        """The arguments that ``kernel`` takes."""
        # Arguments are evaluated from left to right: the sizes are known when they are asked for.
        sizes = [self.extent(name) for name in kernel.sizes]
        return ", ".join([*(each.checked for each in (*self.parameters, *extra)), *sizes])

    def sections(
        self, results: Sequence[tuple[str, str]], extra: Sequence[Parameter] = (), operations: str = ""
    ) -> tuple[str, ...]:
        """The docstring after its first line."""
        lines: list[str] = []
        if self.parameters or extra:
            lines += ["Parameters", "----------"]
        for each in (*self.parameters, *extra):
            kind = described(each.type, each.shape)
            lines.append(f"{each.name} : {kind.replace('ndarray', 'array_like', 1)}")
            if each.source != each.name:
                lines.append(f"    The function's {docstring(each.source)}.")
        lines += ["", "Returns", "-------"]
        lines += [f"{name} : {kind}" if name else kind for name, kind in results]
        if any(each.checked != each.name for each in (*self.parameters, *extra)):
            lines += [
                "",
                "Raises",
                "------",
                "TypeError",
                "    If an argument has another dtype and cannot be cast safely.",
            ]
            shaped = any(each.type.shape for each in (*self.parameters, *extra))
            lines += ["ValueError"] if shaped or self.guarded else []
            lines += ["    If an argument has another shape."] if shaped else []
            lines += ["    If a branch goes another way than the one recorded."] if self.guarded else []
        if operations:
            lines += ["", "Notes", "-----", *textwrap.wrap(f"Operations: {operations}.", _COLUMNS)]
        return tuple(lines[1:] if lines[0] == "" else lines)


class _Spelled(ast.NodeTransformer):
    """Puts what a function reads from its arguments in the place of the names of sizes."""

    def __init__(self, common: Documented) -> None:
        self.common = common

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.common.sizes:
            return node
        open = node.id == self.common.rest
        text = f'math.prod(sizes["{REST}"])' if open else f'sizes["{node.id}"]'
        return ast.parse(text, mode="eval").body


def value_function(
    common: Documented, kernel: Kernel, types: Sequence[TensorType], shapes: Sequence[Sequence[int | str]]
) -> Function:
    """The function itself, without derivative; ``shapes`` are those of its results."""
    hints = [hint(type) for type in types]
    returns = hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
    (value,) = common.free("value")
    texts = [value] if len(types) == 1 else [f"{value}[{number}]" for number in range(len(types))]
    whole = [common.restored(text, shape) for text, shape in zip(texts, shapes, strict=True)]
    body = (
        *common.opening,
        f"{value}: {returns} = {kernel.name}({common.checked(kernel)})",
        f"return {value if whole == texts else ', '.join(whole)}",
    )
    results = [("value" if len(types) == 1 else f"value{number}", described(type)) for number, type in enumerate(types)]
    summary = common.summary or f"Value of {common.name}."
    documentation = common.sections(results, operations=kernel.operations)
    return Function(common.name, common.header(), returns, summary, documentation, body)


def gradient_class(name: str, wanted: Sequence[Parameter]) -> RecordClass:
    """The named tuple that holds the gradients by several parameters."""
    fields = tuple(f"{each.name}: {hint(each.type)}" for each in wanted)
    return RecordClass(name, "Derivatives by each parameter, in its shape and dtype.", fields)


def gradient_functions(
    common: Documented,
    kernel: Kernel,
    value: TensorType,
    wanted: Sequence[Parameter],
    present: Sequence[bool],
    record: str,
) -> tuple[Function, Function]:
    """Value with gradient, and gradient alone; ``present`` says which parameters the kernel gives one for."""
    single = len(wanted) == 1
    gradient = hint(wanted[0].type) if single else record
    count = iter(range(1, 1 + sum(present)))
    (results,) = common.free("results")
    parts = [
        _in_shape(f"{results}[{next(count)}]", each) if found else _zero(each)
        for each, found in zip(wanted, present, strict=True)
    ]
    plain = all(present) and not any(REST in each.shape for each in wanted)
    whole = parts[0] if single else f"{record}({f'*{results}[1:]' if plain else ', '.join(parts)})"
    call = f"{kernel.name}({common.checked(kernel)})"
    body = (
        *common.opening,
        f"{results}: tuple[Any, ...] = {call if any(present) else f'({call},)'}",
        f"return {results}[0], {whole}",
    )
    by = ", ".join(each.name for each in wanted)
    kind = described(wanted[0].type, wanted[0].shape) if single else record
    both = f"{common.name}_value_and_gradient"
    first = Function(
        both,
        common.header(),
        f"tuple[{hint(value)}, {gradient}]",
        _shortened(f"Value of {common.name} and its gradient by {by}."),
        common.sections([("value", described(value)), ("gradient", kind)], operations=kernel.operations),
        body,
    )
    names = ", ".join(each.name for each in common.parameters)
    second = Function(
        f"{common.name}_gradient",
        common.header(),
        gradient,
        _shortened(f"Gradient of {common.name} by {by}."),
        common.sections([("gradient", kind)]),
        (f"return {both}({names})[1]",),
    )
    return first, second


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
