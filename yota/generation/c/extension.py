"""The Python extension around a C file, and what builds it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from yota.codegen.c.kernel import argument_of, result_of
from yota.codegen.c.parts import preludes
from yota.codegen.c.plan import KernelPlan
from yota.codegen.render import render
from yota.errors import ArgumentError
from yota.generation.c.interface import Function

__all__ = ["SizedCall", "called_from_python", "extension"]

_WORTH_RELEASING = 10_000
"""Numbers that a function takes and gives from which on other Python threads may run meanwhile."""
_RAISE = "raise_status"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Texts for the templates to loop over; ``methods`` are names, C functions and docstrings."""

    banner: tuple[str, ...]
    hashes: tuple[str, ...]
    module: str
    header: str
    complex: bool
    kernels: tuple[KernelPlan, ...]
    methods: tuple[tuple[str, str], ...]
    preludes: tuple[str, ...]
    decisions: tuple[str, ...]
    sizes: str
    looks: bool
    call: SizedCall | None


@dataclass(frozen=True, slots=True)
class SizedCall:
    """How Python calls functions that take sizes: their names, and which axes of which arguments tell them."""

    sizes: tuple[str, ...]
    found: Mapping[str, tuple[tuple[str, int], ...]]


def called_from_python(functions: Sequence[Function]) -> tuple[KernelPlan, ...]:
    """The plans of the Python functions around public C functions."""
    return tuple(_wrapped(each) for each in functions if each.public)


def extension(
    stem: str,
    functions: Sequence[Function],
    kernels: tuple[KernelPlan, ...],
    head: Sequence[str],
    decisions: Sequence[str],
    *,
    sizes: str = "",
    call: SizedCall | None = None,
    looks: bool = False,
    complex: bool,
) -> dict[str, str]:
    """Texts of the extension module named ``stem`` and of the files that build it.

    Parameters
    ----------
    functions
        The functions of the C file.
    kernels
        Those that Python may call, as it does.
    head
        What its files say at their tops.
    decisions
        What was decided when the function was recorded, in the order of the numbers that functions return.
    sizes
        What sizes must be, in words; empty if they are numbers.
    call
        Where sizes come from.
    looks
        Whether functions look at indices.

    Raises
    ------
    ArgumentError
        If a Python module cannot have this name.
    """
    if not stem.isidentifier():
        raise ArgumentError(f"a Python module cannot be called {stem!r}; choose another file name for the extension")
    public = [each for each in functions if each.public]
    arrays = "c/pair/sized_array.c.jinja" if call else "c/preludes/take_array.c.jinja"
    plan = _Plan(
        banner=tuple(head),
        hashes=tuple(f"# {line}".rstrip() for line in head),
        module=stem,
        header=f"{stem}.h",
        complex=complex,
        kernels=kernels,
        methods=tuple((each.name, _quoted(_documentation(each))) for each in public),
        preludes=tuple(arrays if name == "take_array" else f"c/preludes/{name}.c.jinja" for name in preludes(kernels)),
        decisions=tuple(map(_quoted, decisions)),
        sizes=sizes,
        looks=looks,
        call=call,
    )
    return {
        f"{stem}module.c": render("c/pair/extension.c.jinja", plan=plan),
        "meson.build": render("c/pair/meson.build.jinja", plan=plan),
        "pyproject.toml": render("c/pair/pyproject.toml.jinja", plan=plan),
    }


def _wrapped(function: Function) -> KernelPlan:
    """The plan of the Python function around a C function."""
    size = sum(math.prod(each.type.shape) for each in function.parameters)
    return KernelPlan(
        name=function.name,
        remarks=(),
        arguments=tuple(argument_of(each.name, each.type, True) for each in function.inputs),
        results=tuple(
            replace(result_of(each.name, each.type), allocate="PyArray_SimpleNew") for each in function.results
        ),
        partials=(),
        lines=(),
        extent=0,
        work=0,
        parallel=False,
        released=size >= _WORTH_RELEASING,
        runs=function.name,
        failure=_RAISE,
    )


def _documentation(function: Function) -> str:
    inputs = ", ".join(each.name for each in function.inputs)
    lines = (line for line in function.documentation if not _is_of_c(line))
    return f"{function.name}({inputs}, /)\n--\n\n" + "\n".join(lines).rstrip()


def _is_of_c(line: str) -> bool:
    """Whether a line says what callers from Python have no use for."""
    return line.startswith("Operations:") or line.endswith("  in  ptrdiff_t")


def _quoted(text: str) -> str:
    """A C string literal of printable ASCII and line breaks."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?").replace("\n", "\\n")
    return f'"{inner}"'
