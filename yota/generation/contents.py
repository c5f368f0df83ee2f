"""From a call to the text of its module: which kernels and functions it has, and what its banner says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yota.autodiff.reverse import gradient_tape
from yota.codegen.names import identifier
from yota.errors import ArgumentError
from yota.generation.assembly import Banner, Parts, assembled
from yota.generation.functions import Documented, gradient_class, gradient_functions, value_function
from yota.generation.kernel import kernel_of
from yota.generation.matrices import add_hessian, add_hvp, add_jacobian
from yota.generation.plain import docstring, shell, visible
from yota.generation.selftest import self_test_of
from yota.generation.signature import class_name, parameters
from yota.generation.sized import sized_kernel
from yota.generation.sizing import Sized, proved, sized
from yota.generation.subject import Call, Subject, digest, reference, source_of, subject_of
from yota.ir.tape import Tape
from yota.layout import Wrt
from yota.rules.registry import registry

__all__ = ["collected"]


def collected(
    f: Callable[..., Any],
    call: Call,
    *,
    name: str | None,
    wrt: Wrt,
    wanted: Sequence[str],
    license: str,
    self_test: bool,
    strict: bool,
    command: tuple[str, ...] | None,
) -> tuple[str, str, tuple[str, ...]]:
    """Text of the module, its file name, and notes for the user."""
    names = call.dimensions()
    found = sized(call, wrt) if names else None
    subject = found.subjects[0] if found else subject_of(call, wrt)
    wish = str(name or getattr(call.function, "__name__", type(call.function).__name__))
    title = _called(wish)
    parts = Parts(guards=subject.tape.guards)
    own = [title, *(f"{title}_{each}" for each in ("gradient", "value_and_gradient", "jacobian", "hessian", "hvp"))]
    shapes = found.shapes() if found else None
    inputs = parameters(subject.arguments.leaves, (*own, f"{class_name(title)}Gradient"), shapes=shapes)
    common = Documented(title, inputs, _summary(call.function), bool(subject.tape.guards), names)
    tapes: list[Tape] = [subject.tape]
    if "value" in wanted:
        _add_value(parts, subject, common, strict, found)
    if "gradient" in wanted:
        tapes.append(_add_gradient(parts, subject, common, strict, found))
    for word, add in (("jacobian", add_jacobian), ("hvp", add_hvp), ("hessian", add_hessian)):
        if word in wanted and found:
            raise ArgumentError(f"with_={word!r} needs sizes that are numbers; {', '.join(names)} has a name")
        if word in wanted:
            tapes.append(add(parts, subject, common, strict))
    if self_test:
        if "gradient" not in wanted:
            raise ArgumentError("self_test checks the gradient; add 'gradient' to with_")
        parts.test, complex_kernel = self_test_of(subject, common, parts.constants)
        parts.kernels += [complex_kernel] if complex_kernel else []
    banner = Banner(
        f"{_title(wanted)} of {docstring(_reference(call, command))}.",
        tuple(_description(call, subject, inputs, wanted, tapes)),
        _command(f, call, name, wrt, wanted, license, self_test, strict, command),
        license,
        source_of(call.function),
    )
    notes = [f"{visible(wish)!r} is called {title} in the module"] if title != wish else []
    notes += [f"{visible(each.source)} is called {each.name} in the module" for each in inputs if each.renamed]
    text = assembled(parts, banner)
    if found:
        proved(text, title, found, wrt, wanted)
    return text, f"{title}.py", tuple(notes)


def _called(wish: str) -> str:
    """A name of the module's own for the function: none that is private, and no keyword."""
    found = identifier(identifier(wish).lstrip("_"))
    return found if found[0].isalpha() else f"function{found}"


def _add_value(parts: Parts, subject: Subject, common: Documented, strict: bool, found: Sized | None) -> None:
    name = f"_{common.name}"
    if found:
        kernel = sized_kernel(found.value(), name, common.sizes, parts.constants)
    else:
        kernel = kernel_of(subject.tape, name, parts.constants, strict=strict)
    parts.kernels.append(kernel)
    types = [subject.tape.types[output] for output in subject.tape.outputs]
    parts.functions.append(value_function(common, kernel.name, types, kernel.operations))


def _add_gradient(parts: Parts, subject: Subject, common: Documented, strict: bool, sized: Sized | None) -> Tape:
    name, leaves = f"_{common.name}_value_and_gradient", subject.layout.wanted
    found = gradient_tape(subject.tape, [subject.tape.inputs[leaf].variable for leaf in leaves], registry())
    if sized:
        kernel = sized_kernel(sized.gradient()[0], name, common.sizes, parts.constants)
    else:
        kernel = kernel_of(found.tape, name, parts.constants, strict=strict)
    parts.kernels.append(kernel)
    by = [common.parameters[leaf] for leaf in leaves]
    record = f"{class_name(common.name)}Gradient"
    if len(by) > 1:
        parts.records.append(gradient_class(record, by))
    present = [variable is not None for variable in found.variables]
    value = subject.tape.types[subject.tape.outputs[0]]
    both, alone = gradient_functions(common, kernel.name, value, by, present, record, kernel.operations)
    parts.functions += [alone, both]
    return found.tape


def _title(wanted: Sequence[str]) -> str:
    words = [
        {"hvp": "Hessian-vector product", "jacobian": "Jacobian", "hessian": "Hessian"}.get(each, each)
        for each in wanted
    ]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return text[0].upper() + text[1:]


def _summary(function: Callable[..., Any]) -> str:
    """The first line of the user's docstring."""
    lines = (getattr(function, "__doc__", None) or "").strip().splitlines()
    text = docstring(lines[0])[:72].rstrip() if lines else ""
    return text.rstrip("\\") if text.rstrip("\\ ") else ""


def _reference(call: Call, command: Sequence[str] | None) -> str:
    if command is not None and len(command) > 2:
        return command[2]
    return reference(call.function) or str(getattr(call.function, "__name__", type(call.function).__name__))


def _description(
    call: Call, subject: Subject, inputs: Sequence[Any], wanted: Sequence[str], tapes: Sequence[Tape]
) -> list[str]:
    lines = ["Argument specs, and what the code was made from:", ""]
    lines += [
        f"    {docstring(name)} = {docstring(str(spec)) if spec is not None else 'a value'}"
        for name, spec in zip(call.names, call.specs, strict=True)
    ]
    names = sorted({op.name for tape in tapes for op in tape.ops})
    known = [rule.source for name in names if registry().knows(name) for rule in registry().rules(name)]
    lines += [f"    rules {digest(chr(10).join(known))}", f"    source {digest(source_of(call.function))}"]
    return lines


def _command(
    f: Callable[..., Any],
    call: Call,
    name: str | None,
    wrt: Wrt,
    wanted: Sequence[str],
    license: str,
    self_test: bool,
    strict: bool,
    command: tuple[str, ...] | None,
) -> tuple[str, ...]:
    """The command that generates the module again, an option to a line."""
    if command is None:
        known = reference(call.function)
        if known is None or call.hidden or any(spec is None for spec in call.specs):
            return ("yota.generate(...) on the function that the docstring names",)
        words = ["yota", "generate", known]
        for argument, spec in zip(call.names, call.specs, strict=True):
            words += ["--arg", f"{argument}={spec}"]
        words += ["--name", name] if name else []
        for each in () if wrt is None else wrt if isinstance(wrt, tuple) else (wrt,):
            words += ["--wrt", str(each)]
        if tuple(wanted) != ("value", "gradient"):
            for each in wanted:
                words += ["--with", each]
        words += ["--license", license] if license else []
        words += ["--self-test"] if self_test else []
        command = (*words, *(["--strict"] if strict else []))
    return tuple(_lines(command))


def _lines(words: Sequence[str]) -> list[str]:
    groups: list[list[str]] = [list(words[:3])]
    for word in words[3:]:
        if word.startswith("-") or groups[-1][:1] == list(words[:1]):
            groups.append([word])
        else:
            groups[-1].append(word)
    texts = [shell(group) for group in groups]
    if sum(map(len, texts)) + len(texts) < 80:
        return [" ".join(texts)]
    return [
        f"{text} \\" if number < len(texts) - 1 else text
        for number, text in enumerate([texts[0], *(f"    {each}" for each in texts[1:])])
    ]
