"""The Python extension around a C file, and what builds it."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from yota.emit.c.c_plan import KernelPlan, preludes
from yota.emit.c.kernels import argument_of, result_of
from yota.emit.python.numpy_calls import python_type
from yota.emit.render import render
from yota.errors import ArgumentError
from yota.package.c.c_functions import FunctionWriter
from yota.package.c.interface import Function, SizedCall
from yota.package.request import recorded_decision
from yota.package.signature import hint

_WORTH_RELEASING = 10_000
"""Numbers that a function takes and gives from which on other Python threads may run meanwhile."""
_RAISE = "raise_status"


def opened(call: SizedCall, kernels: Sequence[KernelPlan]) -> SizedCall:
    """``call`` with any number of axes in the place of the last size."""
    size = call.sizes[-1]
    taken: dict[str, str] = {}
    made: dict[str, str] = {}
    for kernel in kernels:
        for argument in kernel.arguments:
            *first, last = argument.shape.split(", ")
            if last == size:
                taken[argument.name] = f"(const npy_intp[]){{{', '.join(first)}}}" if first else "NULL"
        for result in kernel.results:
            extents = result.shape.split(", ")
            if any(size in re.findall(r"\w+", each) and each != size for each in extents):
                raise ArgumentError(f"{result.name} has an axis of {result.shape} elements, which further axes are not")
            if size in extents:
                made[result.name] = ", ".join("-1" if each == size else each for each in extents)
    return replace(call, open=size, taken=taken, made=made)


def extension(stem: str, found: FunctionWriter, plan: Mapping[str, Any], *, open: bool) -> dict[str, str]:
    """Texts of the extension module ``stem``, if ``open`` for any number of axes, and of the files that build it."""
    if not stem.isidentifier():
        raise ArgumentError(f"a Python module cannot be called {stem!r}; choose another file name for the extension")
    public = [each for each in plan["functions"] if each.public]
    kernels = tuple(map(_wrapped, public))
    call = opened(found.call, kernels) if open and found.call else found.call
    plan = {
        "banner": plan["banner"],
        "hashes": tuple(f"# {line}".rstrip() for line in plan["banner"]),
        "module": stem,
        "header": f"{stem}.h",
        "complex": plan["complex"],
        "kernels": kernels,
        "methods": tuple((each.name, _quoted(_documentation(each, call.open if call else ""))) for each in public),
        "stubs": tuple(map(_stub, public)),
        "preludes": _preludes(kernels, call),
        "decisions": [_quoted(recorded_decision(guard)) for guard in found.guards],
        "sizes": found.condition,
        "looks": any(each.looks for each in found.functions),
        "call": call,
    }
    return {
        f"{stem}module.c": render("c/pair/extension.c.jinja", plan=plan),
        f"{stem}.pyi": render("c/pair/stub.pyi.jinja", plan=plan),
        "meson.build": render("c/pair/meson.build.jinja", plan=plan),
        "pyproject.toml": render("c/pair/pyproject.toml.jinja", plan=plan),
    }


def _preludes(kernels: Sequence[KernelPlan], call: SizedCall | None) -> tuple[str, ...]:
    if call is None:
        return tuple(preludes(kernels))
    arrays = {each.name for kernel in kernels for each in kernel.arguments if each.shape}
    further = ["sized_array"] if arrays - set(call.taken) else []
    further += [*(["open_array"] if call.taken else []), *(["new_open_array"] if call.made else [])]
    texts = [render(f"c/pair/{name}.c.jinja").rstrip("\n") for name in further]
    return (*preludes(kernels, arrays=False), *texts)


def _wrapped(function: Function) -> KernelPlan:
    """The plan of the Python function around a C function."""
    size = sum(math.prod(each.type.shape) for each in function.parameters)
    return KernelPlan(
        name=function.name,
        arguments=tuple(argument_of(each.name, each.type, True) for each in function.inputs),
        results=tuple(
            replace(result_of(each.name, each.type), allocate="PyArray_SimpleNew") for each in function.results
        ),
        lines=(),
        work=0,
        released=int(size) >= _WORTH_RELEASING,
        runs=function.name,
        failure=_RAISE,
    )


def _stub(function: Function) -> str:
    """The function's types, for type checkers."""
    hints = [hint(each.type) if each.type.shape else python_type(each.type) for each in function.inputs]
    taken = "".join(f"{each.name}: {text}, " for each, text in zip(function.inputs, hints, strict=True))
    given = [hint(each.type) for each in function.results]
    result = given[0] if len(given) == 1 else f"tuple[{', '.join(given)}]"
    return f"def {function.name}({taken}/) -> {result}: ..."


def _documentation(function: Function, open: str) -> str:
    inputs = ", ".join(each.name for each in function.inputs)
    # Callers from Python have no use for counts of operations, which come last, and for sizes.
    own = itertools.takewhile(lambda line: not line.startswith("Operations:"), function.documentation)
    lines = (line for line in own if not line.endswith("  in  ptrdiff_t"))
    text = "\n".join(lines).rstrip()
    text = re.sub(rf"\b{open}(?=[],])", "...", text) if open else text
    return f"{function.name}({inputs}, /)\n--\n\n{text}"


def _quoted(text: str) -> str:
    """A C string literal of printable ASCII and line breaks."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?").replace("\n", "\\n")
    return f'"{inner}"'
