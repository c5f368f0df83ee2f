"""What a generated file says of where it came from: function, specs, digests, the command that makes it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yota.emit.c.lines import harmless
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


def recorded_decision(guard: Guard) -> str:
    """The line of a decision, and how it came out, for a comment in C."""
    expected = bool(guard.expected) if guard.kind == "bool" else guard.expected
    return harmless(f"{decision(guard)}  was {visible(str(expected))[:60]}")


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
    given = [f"{name}={spec}" for name, spec in zip(call.names, call.specs, strict=True)]
    by = [] if wrt is None else [str(each) for each in (wrt if isinstance(wrt, tuple) else (wrt,))]
    return command_of(
        known, given, target=request.target, name=request.name, wrt=by, wanted=request.wanted,
        license=request.license, effort=call.search.effort, seconds=call.search.seconds,
        self_test=request.self_test, extension=request.extension, strict=request.strict,
    )  # fmt: skip


def command_of(
    function: str,
    given: Sequence[str],
    *,
    target: str,
    name: str | None,
    wrt: Sequence[str],
    wanted: Sequence[str],
    license: str,
    effort: str,
    seconds: float,
    self_test: bool,
    extension: bool,
    strict: bool,
    rules: Sequence[str] = (),
    sample: str = "",
) -> tuple[str, ...]:
    """The words of the command that generates a module, without what is usual."""
    options: dict[str, Sequence[str]] = {
        "--arg": given,
        "--rules": rules,
        "--target": [target] if target != "numpy" else [],
        "--name": [name] if name else [],
        "--wrt": wrt,
        "--with": wanted if tuple(wanted) != ("value", "gradient") else [],
        "--license": [license] if license else [],
        "--effort": [effort] if effort != "high" else [],
        "--seconds": [f"{seconds:g}"] if seconds != 10.0 else [],
        "--sample": [sample] if sample else [],
    }
    words = [word for option, values in options.items() for value in values for word in (option, value)]
    flags = {"--self-test": self_test, "--extension": extension, "--strict": strict}
    return ("yota", "generate", function, *words, *(flag for flag, is_given in flags.items() if is_given))


def _lines(words: Sequence[str]) -> list[str]:
    if len(words) == 1:
        return list(words)
    groups: list[list[str]] = [list(words[:3])]
    for word in words[3:]:
        if word.startswith("-") or len(groups) == 1:
            groups.append([word])
        else:
            groups[-1].append(word)
    first, *rest = map(shell, groups)
    texts = [first, *(f"    {each}" for each in rest)]
    if len(" ".join([first, *rest])) < 79:
        return [" ".join([first, *rest])]
    return [*(f"{text} \\" for text in texts[:-1]), texts[-1]]
