"""Functions for all partial derivatives: Jacobian, Hessian, and Hessian times vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from yota.generation.assembly import Parts
from yota.generation.derivatives import Derivative, hessian_of, hvp_of, jacobian_of
from yota.generation.functions import Documented, Function
from yota.generation.kernel import kernel_of
from yota.generation.signature import Parameter, described, hint, parameters
from yota.generation.subject import Subject
from yota.ir.tape import Tape

__all__ = ["add_hessian", "add_hvp", "add_jacobian"]


def add_jacobian(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Partial derivatives of each element of the result."""
    found = jacobian_of(subject)
    return _add(parts, found, common, strict, "jacobian", f"Partial derivatives of {common.name} by {{}}.", subject)


def add_hessian(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Second derivatives."""
    found = hessian_of(subject)
    return _add(parts, found, common, strict, "hessian", f"Second derivatives of {common.name} by {{}}.", subject)


def add_hvp(parts: Parts, subject: Subject, common: Documented, strict: bool) -> Tape:
    """Second derivatives times a vector."""
    found, by = hvp_of(subject), _by(subject, common)
    assert found.extra is not None
    (extra,) = parameters([found.extra], [each.name for each in common.parameters], own=("v",))
    kernel = kernel_of(found.tape, f"_{common.name}_hvp", parts.constants, strict=strict)
    parts.kernels.append(kernel)
    result = hint(by.type)
    body = (f"product: {result} = {kernel.name}({common.checked((extra,))})", "return product")
    documentation = common.sections([("product", described(by.type))], (extra,), kernel.operations)
    summary = f"Second derivatives of {common.name} by {by.name}, times v."
    parts.functions.append(
        Function(f"{common.name}_hvp", common.header((extra,)), result, summary, documentation, body)
    )
    return found.tape


def _by(subject: Subject, common: Documented) -> Parameter:
    return common.parameters[subject.layout.wanted[0]]


def _add(
    parts: Parts, found: Derivative, common: Documented, strict: bool, what: str, summary: str, subject: Subject
) -> Tape:
    name, text = f"{common.name}_{what}", summary.format(_by(subject, common).name)
    add = _add_whole if found.extra is None else _add_looped
    parts.functions.append(add(parts, found, common, strict, name, text))
    return found.tape


def _add_whole(parts: Parts, found: Derivative, common: Documented, strict: bool, name: str, summary: str) -> Function:
    kernel = kernel_of(found.tape, f"_{name}", parts.constants, strict=strict)
    parts.kernels.append(kernel)
    type = found.tape.types[found.tape.outputs[0]]
    returns = hint(type)
    body = (f"matrix: {returns} = {kernel.name}({common.checked()})", "return matrix")
    documentation = common.sections([("matrix", described(type))], operations=kernel.operations)
    return Function(name, common.header(), returns, summary, documentation, body)


def _add_looped(parts: Parts, found: Derivative, common: Documented, strict: bool, name: str, summary: str) -> Function:
    """A matrix whose rows come from one kernel, called with each unit vector."""
    assert found.extra is not None
    shape, like = np.shape(found.extra.value), found.like
    known = next(
        (kernel for kernel in parts.kernels if name.endswith("hessian") and kernel.name.endswith("_hvp")), None
    )
    kernel = known or kernel_of(found.tape, f"_{name}_row", parts.constants, strict=strict)
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
    return Function(name, common.header(), returns, summary, documentation, body)


def _listed(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
