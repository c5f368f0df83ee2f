"""What was asked for, and what a generated file says of where it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.emit.c.lines import harmless
from yota.emit.names import identifier
from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.ir.plain_text import docstring, shell, visible
from yota.ir.tape import Guard, Tape
from yota.package.size_checks import compared, is_single, slopes_of
from yota.package.size_recordings import quietly
from yota.package.subject import Call, digest, reference, source_of, subject_of
from yota.rules.registry import registry
from yota.run.gradient_layout import Wrt
from yota.tracing.source_lines import source_line


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request; see `yota.export.generate`."""

    call: Call
    target: str
    name: str | None
    wrt: Wrt
    wanted: tuple[str, ...]
    license: str
    self_test: bool
    strict: bool
    extension: bool
    command: tuple[str, ...] | None
    stem: str | None = None
    laid_out: bool = True
    """Whether long lines of a module are broken, as in a file that is read."""
    smallest: int = 0
    """The size from which on code in a compiled language is to hold, if the function has a value there."""

    def __post_init__(self) -> None:
        if self.self_test and "gradient" not in self.wanted:
            raise ArgumentError("self_test checks the gradient; add 'gradient' to with_")

    @property
    def ordered(self) -> tuple[str, ...]:
        """What is wanted, in the order of the file: a Hessian by rows calls the product with a vector."""
        return tuple(word for word in ("value", "gradient", "jacobian", "hvp", "hessian") if word in self.wanted)

    @property
    def wish(self) -> str:
        """What the function should be called."""
        return self.name or name_of(self.call.function)


_RANKS = (0, 2, 3)
"""Numbers of further axes at which the function must do what it does with one."""
_EXTENTS = (3, 2, 4)


def axes(count: int) -> tuple[str, ...]:
    """Names of the extents of ``count`` further axes.

    >>> axes(2)
    ('further0', 'further1')
    """
    return tuple(f"further{number}" for number in range(count))


def name_of_rest(call: Call) -> str:
    """The name of the one axis that stands for the further ones of ``call``; empty if it has none."""
    name = "rest" if call.open else ""
    while name in call.dimensions():
        name += "_"
    return name


def flattened(request: Request) -> Request:
    """``request`` with one axis, called as `name_of_rest` says, for the further ones."""
    call = request.call
    if not call.open:
        return request
    name = name_of_rest(call)
    flat = call.with_axes((name,))
    for count in _RANKS:
        known = {each: 5 + 2 * place for place, each in enumerate(call.dimensions())}
        further = dict(zip(axes(count), _EXTENTS, strict=False))
        ranked = call.with_axes(axes(count))
        one = _results(ranked, known | further, ranked, known | further, request.wrt)
        other = _results(flat, known | {name: math.prod(further.values())}, ranked, known | further, request.wrt)
        # Without axes an element by itself is a scalar, which has a gradient; an array of one element has none.
        pairs = [] if one is None or other is None else [pair for pair in zip(one, other, strict=True) if all(pair)]
        if one is not None and (not pairs or not all(_same(*pair) for pair in pairs)):
            raise ArgumentError(
                f"with {count} axes in the place of `...` the function does something else than with one that has as "
                "many elements, as code for any number of axes must. Write the axes out, as in float64[B,N,M]"
            )
    return replace(request, call=flat)


def further_axes(call: Call, sizes: Sequence[str]) -> list[str]:
    """What the size is, of all the ``sizes`` that functions take, that the specs of ``call`` do not name."""
    if not call.open:
        return []
    known = call.dimensions()
    (name,) = (size for size in dict.fromkeys(sizes) if size not in known)
    return [f"`{name}` is how many elements the axes have together that `...` stands for: 1 if there are none."]


def _results(
    call: Call, size: Mapping[str, int], like: Call, sizes: Mapping[str, int], wrt: Wrt
) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """Values and gradients at the elements of ``like``; None where the function has no value."""
    function, arguments = call.arguments(size)
    values = [leaf.value for leaf in like.arguments(sizes)[1].leaves]
    given = [np.reshape(value, np.shape(leaf.value))[()] for value, leaf in zip(values, arguments.leaves, strict=True)]
    try:
        value = quietly(function, arguments.rebuild(given))
    except Exception:  # noqa: BLE001
        return None
    if isinstance(value, tuple) or np.ndim(value):
        return value if isinstance(value, tuple) else (value,), ()
    return (value,), slopes_of(subject_of(call, wrt, size).adjoints, given)


def _same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether elements agree; None stands for no derivative."""
    try:
        for pair in zip(one, other, strict=True):
            left, right = (np.ravel([] if each is None else each) for each in pair)
            compared(right, left, "", single=is_single([left]))
    except (ArgumentError, ValueError):
        return False
    return True


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
    lines.append(f"    rules {digest(chr(10).join(known))}")
    # Expressions have no source.
    if source := source_of(call.function):
        lines.append(f"    source {digest(source)}")
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
        known, arg=given, target=request.target, name=request.name, wrt=by, with_=request.wanted,
        license=request.license, effort=call.search.effort, self_test=request.self_test,
        extension=request.extension, strict=request.strict,
    )  # fmt: skip


_USUAL = {"target": "numpy", "with_": ("value", "gradient"), "effort": "high"}


def command_of(function: str, **options: str | bool | Sequence[str] | None) -> tuple[str, ...]:
    """The words of the command that generates a module: its ``options`` in order, without what is usual."""
    words: list[str] = []
    for name, value in options.items():
        option = f"--{name.strip('_').replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value and value != _USUAL.get(name):
            words += [word for each in ([value] if isinstance(value, str) else value) for word in (option, each)]
    return ("yota", "generate", function, *words)


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
