"""What a generated file says of where it came from: function, specs, digests, the command that makes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yota.emit.names import identifier
from yota.ir.callables import name_of
from yota.ir.plain_text import docstring, shell, visible
from yota.ir.tape import Guard, Tape
from yota.package.request import Request
from yota.package.subject import digest, reference, source_of
from yota.rules.registry import registry
from yota.tracing.source_lines import source_line


def called(wish: str) -> str:
    """A name of the module's own for the function: none that is private, and no keyword."""
    found = identifier(identifier(wish).lstrip("_"))
    return found if found[0].isalpha() else f"function{found}"


def headline(wanted: Sequence[str]) -> str:
    """What a file has, in words.

    >>> headline(("value", "gradient", "hvp"))
    'Value, gradient and Hessian-vector product'
    """
    words = [
        {"hvp": "Hessian-vector product", "jacobian": "Jacobian", "hessian": "Hessian"}.get(each, each)
        for each in wanted
    ]
    text = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return text[0].upper() + text[1:]


def summary(function: Callable[..., Any]) -> str:
    """The first line of the user's docstring."""
    lines = (getattr(function, "__doc__", None) or "").strip().splitlines()
    text = docstring(lines[0])[:72].rstrip() if lines else ""
    return text.rstrip("\\") if text.rstrip("\\ ") else ""


def reference_of(request: Request) -> str:
    """How the function is called in the head of a file."""
    call, command = request.call, request.command
    if command is not None and len(command) > 2:
        return command[2]
    return reference(call.function) or name_of(call.function)


def decision(guard: Guard) -> str:
    """The line that took a decision, and what it decides on where it does not say so itself."""
    line = visible(source_line(guard.location)) or "a branch"
    return f"{line}  # whether the triangles of the matrix differ" if guard.kind == "hermitian" else line


def description(request: Request, tapes: Sequence[Tape]) -> list[str]:
    """The specs of the arguments, and digests of the rules that were used and of the source."""
    call = request.call
    lines = ["Argument specs, and what the code was made from:", ""]
    lines += [
        f"    {docstring(name)} = {docstring(str(spec)) if spec is not None else 'a value'}"
        for name, spec in zip(call.names, call.specs, strict=True)
    ]
    names = sorted({op.name for tape in tapes for op in tape.ops})
    known = [rule.source for name in names if registry().knows(name) for rule in registry().rules(name)]
    lines += [f"    rules {digest(chr(10).join(known))}", f"    source {digest(source_of(call.function))}"]
    return lines


def command_lines(request: Request) -> tuple[str, ...]:
    """The command that generates the module again, an option to a line."""
    return tuple(_lines(request.command or _made_up(request)))


def _made_up(request: Request) -> tuple[str, ...]:
    call, wrt = request.call, request.wrt
    known = reference(call.function)
    if known is None or call.hidden or any(spec is None for spec in call.specs):
        return ("yota.generate(...) on the function that the docstring names",)
    words = ["yota", "generate", known]
    for argument, spec in zip(call.names, call.specs, strict=True):
        words += ["--arg", f"{argument}={spec}"]
    words += ["--target", request.target] if request.target != "numpy" else []
    words += ["--name", request.name] if request.name else []
    for each in () if wrt is None else wrt if isinstance(wrt, tuple) else (wrt,):
        words += ["--wrt", str(each)]
    if request.wanted != ("value", "gradient"):
        for each in request.wanted:
            words += ["--with", each]
    words += ["--license", request.license] if request.license else []
    words += ["--effort", call.search.effort] if call.search.effort != "high" else []
    words += ["--seconds", f"{call.search.seconds:g}"] if call.search.seconds != 10.0 else []
    words += [flag for flag, given in request.flags() if given]
    return tuple(words)


def _lines(words: Sequence[str]) -> list[str]:
    groups: list[list[str]] = [list(words[:3])]
    for word in words[3:]:
        if word.startswith("-") or groups[-1][:1] == list(words[:1]):
            groups.append([word])
        else:
            groups[-1].append(word)
    if len(words) == 1:
        return list(words)
    texts = [shell(group) for group in groups]
    if sum(map(len, texts)) + len(texts) < 80:
        return [" ".join(texts)]
    return [
        f"{text} \\" if number < len(texts) - 1 else text
        for number, text in enumerate([texts[0], *(f"    {each}" for each in texts[1:])])
    ]
