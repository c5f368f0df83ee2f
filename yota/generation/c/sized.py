"""C for all sizes: made at several of them, and written as one where nothing but numbers differs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from yota.codegen.c.lines import Needs
from yota.codegen.c.lines import filled as in_lines
from yota.codegen.c.plan import Argument, KernelPlan
from yota.codegen.c.sizes import Made, Sizes
from yota.codegen.c.standalone import Shared
from yota.codegen.c.statements import NO_MEMORY, WRONG_SIZES
from yota.codegen.c.tables import Tables
from yota.codegen.c.types import c_type
from yota.errors import ArgumentError
from yota.generation.c.arithmetic import real, whole
from yota.generation.c.attempts import AllSizes, at_samples, same_tables
from yota.generation.c.extension import SizedCall, called_from_python
from yota.generation.c.filling import COUNTERS, factor, filling
from yota.generation.c.interface import Function, Parameter, arguments_of, parameter_names
from yota.generation.c.selftest import SelfTest
from yota.generation.c.writers import ON_STACK, Prepared, Reading, Writing
from yota.generation.c.written import Written, filled, tested
from yota.generation.request import Request
from yota.generation.subject import Subject
from yota.generation.varying import Varying
from yota.ir.tape import Tape

__all__ = ["written_for_all_sizes"]

_MEMORY = re.compile(r"[mc]alloc\(\(size_t\)(\(.+?\))(?: \*|,) sizeof")
"""Memory for more elements than a single size has."""
_ASKED = re.compile(r"= malloc\(\(size_t\)(\(.+?\)|\w+) \* sizeof")
_COUNTING = re.compile(r"np\.arange\([^,]+, dtype=np\.int64\)")
_WORD = re.compile(r"[A-Za-z_]\w*")


def written_for_all_sizes(request: Request) -> Written:
    """Functions that take the sizes of their arguments.

    Raises
    ------
    ArgumentError
        If the function does something else at another size, or the code for one size differs in more than numbers.
    """
    return at_samples(request, lambda *found: _Sized(request, *found).written())


class _Sized(AllSizes):
    """Writes one file for all sizes."""

    def written(self) -> Written:
        """All of it."""
        tapes: list[dict[str, Tape]] = []
        for subject in self.subjects:
            shared = self._shared()
            reading = Reading(self.title, subject, self._inputs(subject), shared)
            reading.sizes = self.sizes
            filled(reading, self.request.wanted)
            tapes.append(reading.tapes)
        prepared = {name: self._prepared([each[name] for each in tapes]) for name in tapes[0]}
        writers = []
        for number, subject in enumerate(self.subjects):
            writer = Writing(self.title, subject, self._inputs(subject), self.request, self._shared(), prepared, number)
            writer.sizes = self.sizes
            filled(writer, self.request.wanted)
            writers.append(writer)
        same_tables(writer.shared.tables for writer in writers)
        functions = self._functions([writer.found for writer in writers])
        first = writers[0]
        return Written(
            self.title,
            first.inputs,
            functions,
            first.shared.needs,
            tuple(first.shared.tables.lines),
            (self.subjects[0].tape, *(each.separated.general.tape for each in prepared.values())),
            tuple(self.subjects[0].tape.guards),
            self._test(writers),
            self._wrapped(writers) if self.request.extension else (),
            self.conditions.described(),
            self._call(first.found),
        )

    def _shared(self) -> Shared:
        names = self.file_names()
        return Shared(names, Needs(), Tables(names))

    def _inputs(self, subject: Subject) -> tuple[Parameter, ...]:
        return arguments_of(subject.arguments.leaves, parameter_names(self.title, self.sizes))

    def _prepared(self, tapes: Sequence[Tape]) -> Prepared:
        found, names = self.separated(tapes), self.local_names(tapes[0])
        hints = [names.fresh(each.hint) for each in found.varying]
        counters = [names.fresh(each) for each in COUNTERS]
        made = tuple(self._made(each, name, counters) for each, name in zip(found.varying, hints, strict=True))
        return Prepared(found, Sizes(self.sizes, made, ON_STACK))

    def _made(self, varying: Varying, name: str, counters: Sequence[str]) -> Made:
        kind = c_type(varying.type.dtype)
        if not varying.type.shape:
            value = whole if varying.type.dtype.kind in "iu" else real
            return Made(name, kind, str(value(varying.text, self.names)))
        extents = [str(whole(each, self.names)) for each in varying.shape]
        count = extents[0] if len(extents) == 1 else " * ".join(map(factor, extents))
        *loops, statement = filling(varying.text, name, extents, kind, self.names, counters)
        room = f"(size_t){f'({count})' if ' ' in count else count}"
        counting = _COUNTING.fullmatch(varying.text) is not None
        return Made(name, kind, statement, room, tuple(loops), counting)

    def _functions(self, each: Sequence[Sequence[Function]]) -> tuple[Function, ...]:
        found = [self._function(functions) for functions in zip(*each, strict=True)]
        needed = {function.name: self.sizes for function in found}
        kernels = {kernel.name: kernel for function in found for kernel in function.kernels}
        needed |= {name: tuple(_used(kernel.lines, self.sizes)) for name, kernel in kernels.items()}
        return tuple(self._finished(function, needed) for function in found)

    def _function(self, each: Sequence[Function]) -> Function:
        """One function, but for what it takes from sizes and hands on."""
        first = each[0]
        kernels = tuple(self._kernel(kernels) for kernels in zip(*(one.kernels for one in each), strict=True))
        pieces = first.pieces
        if any(one.pieces != pieces for one in each):
            raise ArgumentError("the function is too long for code in C for all sizes; fix the sizes")
        return replace(
            first,
            lines=self.texts.lines([one.lines for one in each]),
            kernels=kernels,
            documentation=self.texts.remarks([one.documentation for one in each]),
        )

    def _kernel(self, each: Sequence[KernelPlan]) -> KernelPlan:
        return replace(each[0], lines=self.texts.lines([one.lines for one in each]))

    def _finished(self, function: Function, needed: Mapping[str, Sequence[str]]) -> Function:
        """The function with sizes handed to it and on."""
        lines = [_roomy(_handed_on(line, needed), self.conditions.least, self.names) for line in function.lines]
        delegates = " ".join(lines).count(";") == 2 and lines[1].lstrip().startswith("return ") and "(" in lines[1]
        checks = [] if delegates or not function.public else list(self._checks(lines))
        unused = [f"    (void){name};" for name in self.sizes if name not in _used([*checks, *lines], self.sizes)]
        kernels = tuple(
            replace(kernel, arguments=(*map(_size, needed[kernel.name]), *kernel.arguments))
            for kernel in function.kernels
        )
        return replace(function, lines=(*unused, *checks, *lines), kernels=kernels)

    def _checks(self, lines: Sequence[str]) -> Iterator[str]:
        """What sizes must be, ahead of everything."""
        yield from _indented([*in_lines(f"if ({self.conditions.failed()})"), f"    return {WRONG_SIZES};"])
        found = (_MEMORY.search(line) for line in lines)
        counts = dict.fromkeys(match[1] for match in found if match)
        large = [each for each in counts if len(re.findall(rf"\b({'|'.join(self.sizes)})\b", each)) > 1]
        if large:
            tests = " || ".join(f"{self._in_double(each)} > most" for each in large)
            yield "    const double most = (double)(PTRDIFF_MAX / 16);"
            yield from _indented([*in_lines(f"if ({tests})"), f"    return {NO_MEMORY};"])

    def _in_double(self, count: str) -> str:
        """A count of elements in floating point, where it does not overflow."""
        return re.sub(rf"\b({'|'.join(self.sizes)})\b", r"(double)\1", count[1:-1])

    def _test(self, writers: Sequence[Writing]) -> SelfTest | None:
        tests = [tested(self.request, self.title, writer.found, writer.subject) for writer in writers]
        if tests[0] is None:
            return None
        parts: dict[str, Any] = {
            name: self.texts.lines([getattr(test, name) for test in tests])
            for name in ("declarations", "points", "moves", "slopes")
        }
        return replace(tests[0], **parts, sizes=tuple(self.extents()))

    def _wrapped(self, writers: Sequence[Writing]) -> tuple[KernelPlan, ...]:
        """Plans of the functions for Python, with shapes by the names of sizes."""
        each = [called_from_python(writer.found) for writer in writers]
        return tuple(self._wrapper(plans) for plans in zip(*each, strict=True))

    def _wrapper(self, plans: Sequence[KernelPlan]) -> KernelPlan:
        parts: dict[str, Any] = {}
        for name in ("arguments", "results"):
            rows = zip(*(getattr(plan, name) for plan in plans), strict=True)
            parts[name] = tuple(replace(row[0], shape=self.texts.line([one.shape for one in row])) for row in rows)
        return replace(plans[0], **parts)

    def _call(self, functions: Sequence[Function]) -> SizedCall:
        """Which axis of which argument tells each size first."""
        arguments = {each.name: each for function in functions if function.public for each in function.inputs}
        told = list(self.told(arguments.values()))
        found = {name: tuple((size, axis) for size, by, axis in told if by == name) for name in arguments}
        return SizedCall(self.sizes, found)


def _used(lines: Sequence[str], sizes: Sequence[str]) -> list[str]:
    """Those of ``sizes`` that code mentions."""
    words = {word for line in lines if not line.lstrip().startswith("/*") for word in _WORD.findall(line)}
    return [size for size in sizes if size in words]


def _handed_on(line: str, needed: Mapping[str, Sequence[str]]) -> str:
    """A line with sizes in the calls of what takes them."""

    def call(match: re.Match[str]) -> str:
        given = "".join(f"{size}, " for size in needed.get(match[1], ()))
        return f"{match[1]}({given}"

    return re.sub(r"\b(\w+)\(", call, line)


def _roomy(line: str, least: Mapping[str, int], names: Mapping[str, str]) -> str:
    """A line that asks for memory even if there is nothing to keep: some C libraries have no memory of no bytes."""
    match = _ASKED.search(line)
    if match is None:
        return line
    sizes = {names[name]: extent for name, extent in least.items()}
    count = eval(match[1].replace("/", "//"), {"__builtins__": {}}, sizes)
    return line if count > 0 else line.replace(");", " + 1);")


def _size(name: str) -> Argument:
    return Argument(name, "ptrdiff_t", "", "", 0, "", True, "")


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
