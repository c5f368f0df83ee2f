"""The public functions of a standalone module: value, gradient, and both."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from yota.codegen.names import Names
from yota.generation.kernel import Kernel
from yota.generation.plain import docstring
from yota.generation.signature import Parameter, described, hint
from yota.ir.types import TensorType

__all__ = ["Documented", "Function", "RecordClass", "gradient_class", "gradient_functions", "value_function"]

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

    Parameters
    ----------
    name
        Name of the function in the module.
    parameters
        Its parameters.
    summary
        What the user's docstring says first; empty if nothing.
    guarded
        Whether the tape has preconditions.
    sizes
        Names of sizes that the arguments give.
    """

    name: str
    parameters: tuple[Parameter, ...]
    summary: str
    guarded: bool
    sizes: tuple[str, ...] = ()

    @property
    def opening(self) -> tuple[str, ...]:
        """Statements ahead of the call of a kernel."""
        return ("sizes: dict[str, int] = {}",) if self.sizes else ()

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
        sizes = [f'sizes["{name}"]' for name in kernel.sizes]
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


def value_function(common: Documented, kernel: Kernel, types: Sequence[TensorType]) -> Function:
    """The function itself, without derivative."""
    hints = [hint(type) for type in types]
    returns = hints[0] if len(hints) == 1 else f"tuple[{', '.join(hints)}]"
    (value,) = common.free("value")
    body = (*common.opening, f"{value}: {returns} = {kernel.name}({common.checked(kernel)})", f"return {value}")
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
    parts = [f"{results}[{next(count)}]" if found else _zero(each) for each, found in zip(wanted, present, strict=True)]
    whole = parts[0] if single else f"{record}({f'*{results}[1:]' if all(present) else ', '.join(parts)})"
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


def _zero(parameter: Parameter) -> str:
    type = parameter.type
    if type.weak:
        return "0.0" if type.dtype.kind == "f" else "0j"
    named = any(isinstance(extent, str) for extent in parameter.shape)
    shape = f"np.shape({parameter.name})" if named else str(type.shape)
    return f"np.zeros({shape}, np.{type.dtype.name})" + ("" if type.shape else "[()]")


def _shortened(text: str) -> str:
    return text if len(text) <= _COLUMNS else text.partition(" by ")[0] + "."
