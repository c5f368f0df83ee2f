"""From a call to the text of its module: which kernels and functions it has, and what its banner says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from yota.errors import ArgumentError
from yota.ir.plain_text import docstring, visible
from yota.ir.tape import Tape
from yota.package.assembly import Banner, Parts, assembled
from yota.package.matrix_functions import MATRICES, Matrices
from yota.package.provenance import called, command_lines, description, headline, reference_of, summary
from yota.package.python_functions import Documented, gradient_class, gradient_functions, value_function
from yota.package.python_kernel import kernel_of, sized_kernel
from yota.package.python_selftest import self_test_of
from yota.package.request import Request, axes, flattened, name_of_rest
from yota.package.signature import class_name, parameters
from yota.package.size_checks import proved
from yota.package.size_recordings import Sized, sized
from yota.package.subject import Subject, source_of, subject_of
from yota.rules.registry import registry
from yota.run.scalar_code import short_gradient, short_value

_RANKS = (0, 1, 2, 4)
"""Numbers of further axes at which code for any of them is proved."""


@dataclass(frozen=True, slots=True)
class _Collected:
    """A module's parts, with what they were made from."""

    parts: Parts
    common: Documented
    tapes: tuple[Tape, ...]
    sized: Sized | None


def collected(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    """Text of the module by its file name, and notes for the user."""
    if not request.call.dimensions() and not request.call.open:
        return _proved(request, few=True, is_checked=False)
    found = None
    # At small sizes a part of an array may have another length than its formula says.
    for few, is_checked in ((True, False), (False, False), (False, True)):
        try:
            return _proved(request, few=few, is_checked=is_checked)
        except ArgumentError as fault:
            found = fault if not is_checked or found is None else found
    assert found is not None
    raise found


def _proved(request: Request, *, few: bool, is_checked: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    call, wrt, wanted = request.call, request.wrt, request.wanted
    if call.open and request.self_test:
        raise ArgumentError(
            "self_test needs a known number of axes; write them out instead of `...`, as in float64[B,N,M]"
        )
    found = _collected(flattened(request), name_of_rest(call), few=few, is_checked=is_checked)
    banner = Banner(
        f"{headline(wanted)} of {docstring(reference_of(request))}.",
        tuple(description(request, found.tapes)),
        command_lines(request),
        request.license,
        source_of(call.function),
    )
    title, inputs = found.common.name, found.common.parameters
    notes = [f"{visible(request.wish)!r} is called {title} in the module"] if title != request.wish else []
    notes += [f"{visible(each.source)} is called {each.name} in the module" for each in inputs if each.renamed]
    text = assembled(found.parts, banner)
    for ranked in [call.with_axes(axes(count)) for count in _RANKS] if call.open else [call]:
        if call.open or ranked.dimensions():
            proved(text, title, ranked, wrt, wanted, found.sized, strict=request.strict)
    return {f"{title}.py": text}, tuple(notes)


def _collected(request: Request, rest: str, *, few: bool, is_checked: bool) -> _Collected:
    """The parts; ``rest`` is the size that stands for further axes."""
    call = request.call
    wrt, wanted, strict = request.wrt, request.wanted, request.strict
    names = call.dimensions()
    found = replace(sized(call, wrt, strict=strict, few=few), is_checked=is_checked) if names else None
    subject = found.subjects[0] if found else subject_of(call, wrt)
    title = called(request.wish)
    parts = Parts()
    own = [title, *(f"{title}_{each}" for each in ("gradient", "value_and_gradient", "jacobian", "hessian", "hvp"))]
    shapes = found.shapes() if found else None
    # A named tuple has methods of these names.
    fields = ("count", "index") if len(subject.layout.wanted) > 1 else ()
    reserved = (*own, f"{class_name(title)}Gradient", *fields)
    inputs = parameters(subject.arguments.leaves, reserved, shapes=shapes, rest=rest)
    common = Documented(title, inputs, summary(call.function), bool(subject.tape.guards), names, rest)
    tapes: list[Tape] = [subject.tape]
    if "value" in wanted:
        _add_value(parts, subject, common, strict, found)
    if "gradient" in wanted:
        tapes.append(_add_gradient(parts, subject, common, strict, found))
    matrices = Matrices(parts, subject, common, strict, found)
    tapes += [add(matrices) for word, add in MATRICES.items() if word in wanted]
    # Derivatives of loops add guards behind those of the value.
    parts.guards = max((each.guards for each in tapes), key=len)
    if request.self_test:
        parts.test, complex_kernel = self_test_of(subject, common, parts.constants)
        parts.kernels += [complex_kernel] if complex_kernel else []
    return _Collected(parts, common, tuple(tapes), found)


def _add_value(parts: Parts, subject: Subject, common: Documented, strict: bool, found: Sized | None) -> None:
    name = f"_{common.name}"
    if found:
        kernel = sized_kernel(found, found.value(), name, parts.constants)
    else:
        tape = subject.tape if strict else short_value(subject.tape, subject.call.search)
        kernel = kernel_of(subject.valued(tape, strict), name, parts.constants, strict=strict)
    parts.kernels.append(kernel)
    types = [subject.tape.types[output] for output in subject.tape.outputs]
    shapes = found.results() if found else [type.shape for type in types]
    parts.functions.append(value_function(common, kernel, types, shapes))


def _add_gradient(parts: Parts, subject: Subject, common: Documented, strict: bool, sized: Sized | None) -> Tape:
    name, leaves = f"_{common.name}_value_and_gradient", subject.layout.wanted
    found = subject.adjoints()
    if sized:
        kernel = sized_kernel(sized, sized.gradient(), name, parts.constants)
    else:
        given = [leaf for leaf, variable in zip(leaves, found.variables, strict=True) if variable is not None]
        tape = found.tape if strict else short_gradient(found.tape, given, registry(), subject.call.search)
        kernel = kernel_of(subject.valued(tape, strict), name, parts.constants, strict=strict)
    parts.kernels.append(kernel)
    by = [common.parameters[leaf] for leaf in leaves]
    record = f"{class_name(common.name)}Gradient"
    if len(by) > 1:
        parts.records.append(gradient_class(record, by))
    present = [variable is not None for variable in found.variables]
    value = subject.tape.types[subject.tape.outputs[0]]
    both, alone = gradient_functions(common, kernel, value, by, present, record)
    parts.functions += [alone, both]
    return found.tape
