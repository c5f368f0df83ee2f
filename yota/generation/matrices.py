"""Functions for all partial derivatives: Jacobian, Hessian, and Hessian times vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.api import gradient
from yota.errors import ArgumentError
from yota.generation.assembly import Parts
from yota.generation.functions import Documented, Function
from yota.generation.kernel import kernel_of
from yota.generation.signature import Parameter, described, hint, parameters
from yota.generation.subject import Subject
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.rules.registry import registry
from yota.tracing.record import Leaf, record

__all__ = ["add_hessian", "add_hvp", "add_jacobian"]

_UNROLLED = 16
"""Rows up to which a matrix is one piece of code, rather than a loop over rows."""


def add_jacobian(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Partial derivatives of each element of the result."""
    leaf, by = _wanted(subject, common, "jacobian")
    if len(subject.tape.outputs) != 1:
        raise ArgumentError(f"{common.name} returns several values; a Jacobian needs one array")
    result = subject.tape.types[subject.tape.outputs[0]]
    function, like = _on_leaves(subject), TensorType(by.type.dtype, result.shape + by.type.shape)

    def element(position: int) -> Callable[..., Any]:
        return lambda *leaves: np.reshape(function(*leaves), -1)[position]

    def rows(*leaves: Any) -> Any:
        if not result.shape:
            return gradient(function, leaf)(*leaves)
        found = [gradient(element(position), leaf)(*leaves) for position in range(result.size)]
        return np.reshape(np.stack(found), like.shape)

    def weighted(*values: Any) -> Any:
        return gradient(lambda *leaves: np.sum(values[-1] * function(*leaves)), leaf)(*values[:-1])

    name = f"{common.name}_jacobian"
    text = f"Partial derivatives of {common.name} by {by.name}."
    if result.size <= _UNROLLED:
        return _add_whole(parts, subject, common, strict, rows, name, text, like)
    seed = Leaf(np.ones(result.shape, result.dtype), len(common.parameters), "seed")
    return _add_looped(parts, subject, common, strict, weighted, seed, name, text, like)


def add_hessian(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Second derivatives."""
    leaf, by = _wanted(subject, common, "hessian")
    function, like = _on_leaves(subject), TensorType(by.type.dtype, by.type.shape + by.type.shape)

    def element(position: int) -> Callable[..., Any]:
        return lambda *leaves: np.reshape(gradient(function, leaf)(*leaves), -1)[position]

    def rows(*leaves: Any) -> Any:
        if not by.type.shape:
            return gradient(gradient(function, leaf), leaf)(*leaves)
        found = [gradient(element(position), leaf)(*leaves) for position in range(by.type.size)]
        return np.reshape(np.stack(found), like.shape)

    name = f"{common.name}_hessian"
    text = f"Second derivatives of {common.name} by {by.name}."
    if by.type.size <= _UNROLLED:
        return _add_whole(parts, subject, common, strict, rows, name, text, like)
    return _add_looped(
        parts, subject, common, strict, _product(subject, leaf), _direction(subject, leaf), name, text, like
    )


def add_hvp(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Second derivatives times a vector."""
    leaf, by = _wanted(subject, common, "hvp")
    direction = _direction(subject, leaf)
    (extra,) = parameters([direction], [each.name for each in common.parameters], own=("v",))
    tape = _recorded(subject, _product(subject, leaf), direction)
    kernel = kernel_of(tape, f"_{common.name}_hvp", parts.constants, strict=strict)
    parts.kernels.append(kernel)
    result = hint(by.type)
    body = (f"product: {result} = {kernel.name}({common.checked((extra,))})", "return product")
    documentation = common.sections([("product", described(by.type))], (extra,), kernel.operations)
    summary = f"Second derivatives of {common.name} by {by.name}, times v."
    parts.functions.append(
        Function(f"{common.name}_hvp", common.header((extra,)), result, summary, documentation, body)
    )
    return tape


def _wanted(subject: Subject, common: Documented, what: str) -> tuple[int, Parameter]:
    leaves = subject.layout.wanted
    if len(leaves) != 1:
        names = ", ".join(common.parameters[leaf].source for leaf in leaves)
        raise ArgumentError(f"with_={what!r} differentiates by one array, not by {names}; choose an argument with wrt=")
    found = common.parameters[leaves[0]]
    if found.type.is_complex:
        raise ArgumentError(f"with_={what!r} needs a real argument; {found.source} is complex")
    return leaves[0], found


def _on_leaves(subject: Subject) -> Callable[..., Any]:
    return lambda *leaves: subject.function(*subject.arguments.rebuild(leaves))


def _direction(subject: Subject, leaf: int) -> Leaf:
    value = subject.arguments.leaves[leaf].value
    return Leaf(np.ones_like(value) if isinstance(value, np.ndarray) else value, len(subject.arguments.leaves), "v")


def _product(subject: Subject, leaf: int) -> Callable[..., Any]:
    function = _on_leaves(subject)

    def product(*values: Any) -> Any:
        slope = gradient(function, leaf)
        return gradient(lambda *leaves: np.sum(slope(*leaves) * values[-1]), leaf)(*values[:-1])

    return product


def _recorded(subject: Subject, function: Callable[..., Any], *extra: Leaf) -> Tape:
    leaves = [
        Leaf(leaf.value, position, leaf.name, leaf.path)
        for position, leaf in enumerate((*subject.arguments.leaves, *extra))
    ]
    function.__name__ = subject.tape.name
    return record(function, leaves, tuple, registry=registry()).tape


def _add_whole(
    parts: Parts,
    subject: Subject,
    common: Documented,
    strict: bool,
    function: Callable[..., Any],
    name: str,
    summary: str,
    like: TensorType,
) -> Tape:
    tape = _recorded(subject, function)
    kernel = kernel_of(tape, f"_{name}", parts.constants, strict=strict)
    parts.kernels.append(kernel)
    returns = hint(tape.types[tape.outputs[0]])
    body = (f"matrix: {returns} = {kernel.name}({common.checked()})", "return matrix")
    documentation = common.sections([("matrix", described(tape.types[tape.outputs[0]]))], operations=kernel.operations)
    parts.functions.append(Function(name, common.header(), returns, summary, documentation, body))
    return tape


def _add_looped(
    parts: Parts,
    subject: Subject,
    common: Documented,
    strict: bool,
    function: Callable[..., Any],
    extra: Leaf,
    name: str,
    summary: str,
    like: TensorType,
) -> Tape:
    """A matrix whose rows come from one kernel, called with each unit vector."""
    tape = _recorded(subject, function, extra)
    shape = np.shape(extra.value)
    known = next(
        (kernel for kernel in parts.kernels if name.endswith("hessian") and kernel.name.endswith("_hvp")), None
    )
    kernel = known or kernel_of(tape, f"_{name}_row", parts.constants, strict=strict)
    if known is None:
        parts.kernels.append(kernel)
    returns, size = hint(like), int(np.prod(shape))
    dtype = "" if like.dtype == np.float64 else f", dtype=np.{like.dtype.name}"
    body = (
        *(f"{each.name} = {each.checked}" for each in common.parameters),
        f"units = np.eye({size}{dtype}).reshape({_listed((size, *shape))})",
        f"rows = [{kernel.name}({', '.join([*(each.name for each in common.parameters), 'unit'])}) for unit in units]",
        f"matrix: {returns} = np.stack(rows).reshape({_listed(like.shape)})",
        "return matrix",
    )
    documentation = common.sections([("matrix", described(like))], operations=f"for each row {kernel.operations}")
    parts.functions.append(Function(name, common.header(), returns, summary, documentation, body))
    return tape


def _listed(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
