"""The tape explorer: collects the data of a report from a recorded function, and renders it as one HTML page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import yota
from yota.emit.render import render
from yota.errors import ArgumentError, MissingRuleError
from yota.ir.printing import show_constant, show_op
from yota.ir.tape import Op, Tape
from yota.package.subject import Subject, call_of, subject_of
from yota.rules.language.model import Rule
from yota.rules.registry import Registry, registry
from yota.run.gradient_layout import Wrt
from yota.tools.report.diagram import drawn
from yota.tools.report.notebook import formulas
from yota.tools.report.origins import MOST, Generated, Reversed, generated, native, reversed_tape, stamp, totals
from yota.tools.report.source_pieces import Card, Pair, Report, Row, pieces, plain, source_blocks


def report_of(subject: Subject, sizes: Mapping[str, int], *, target: str = "numpy", strict: bool = False) -> Report:
    """The report on a function and its gradient; ``sizes`` are the values of named sizes."""
    known = registry()
    wanted = [subject.tape.inputs[leaf].variable for leaf in subject.layout.wanted]
    found = reversed_tape(subject.tape, wanted, known)
    found = replace(found, tape=subject.valued(found.tape, strict))
    numpy = target == "numpy"
    made = generated(found.tape, strict=strict) if numpy else native(found.tape, target, strict=strict)
    stands_for = _stands_for(made, found.tape)
    inputs = ", ".join(f"{entry.name}: {subject.tape.types[entry.variable]}" for entry in subject.tape.inputs)
    summary = f"value and gradient for {inputs}" if inputs else "value"
    summary += f" ({', '.join(f'{name} = {size}' for name, size in sizes.items())})" if sizes else ""
    sources = source_blocks(found.tape.ops)
    pairs = _pairs(found, made, stands_for, dict(zip(wanted, found.gradients, strict=True)))
    code = _code(made, stands_for)
    return Report(
        title=subject.tape.name,
        summary=summary,
        version=yota.__version__,
        totals=totals(subject.tape, found.tape, made),
        sources=sources,
        tape=pairs,
        rules=_cards(found, known),
        code=code,
        formulas=formulas(found.tape),
        language={"numpy": "NumPy", "c": "C", "cuda": "CUDA"}[target],
        widest={
            "source": _widest(row for block in sources for row in block.rows),
            "tape": _widest(row for pair in pairs for row in (pair.primal, *pair.adjoints)),
            "code": _widest(code),
        },
        diagram=drawn(found.tape, found.primal),
    )


def _widest(rows: Iterable[Row]) -> int:
    return max((sum(len(piece.text) for piece in row.pieces) for row in rows), default=0)


def _pairs(
    found: Reversed, made: Generated, stands_for: Mapping[int, set[int]], gradients: Mapping[int, int | None]
) -> tuple[Pair, ...]:
    """The tape: inputs, constants, each op with the ops of its derivative, and outputs."""
    tape, groups = found.tape, _groups(made, stands_for)
    adjoints: dict[int, list[Op]] = defaultdict(list)
    for op in tape.ops:
        if op.result in found.primal:
            adjoints[found.primal[op.result]].append(op)

    def adjoint_rows(variable: int) -> tuple[Row, ...]:
        return tuple(_op_row(tape, each, groups) for each in adjoints[variable])

    pairs = []
    for entry in tape.inputs:
        text = f"inp %{entry.variable}::{tape.types[entry.variable]}  {entry.place}"
        adjoint = gradients.get(entry.variable)
        note = f"its gradient is %{adjoint}" if adjoint is not None else ""
        row = Row("", plain(text), str(entry.variable), note=note)
        pairs.append(Pair("input", row, adjoint_rows(entry.variable)))
    used = {operand for op in tape.ops for operand in op.operands} | set(tape.outputs)
    for variable, value in tape.constants.items():
        if variable in used:
            text = f"const %{variable} = {show_constant(value)}::{tape.types[variable]}"
            pairs.append(Pair("constant", Row("", plain(text), str(variable))))
    guards = {guard.after: guard for guard in tape.guards}
    for count, op in enumerate(tape.ops, start=1):
        if op.result not in found.primal:
            pairs.append(Pair("op", _op_row(tape, op, groups), adjoint_rows(op.result)))
        if count in guards:
            guard = guards[count]
            text = f"guard {guard.kind}(%{guard.variable}) == {guard.expected!r}"
            pairs.append(Pair("guard", Row("", plain(text), str(guard.variable))))
    text = "return " + ", ".join(f"%{variable}" for variable in tape.outputs)
    pairs.append(Pair("return", Row("", plain(text), " ".join(map(str, tape.outputs)))))
    return tuple(pairs)


def _op_row(tape: Tape, op: Op, groups: Mapping[int, str]) -> Row:
    reads = " ".join(str(operand) for operand in dict.fromkeys(op.operands))
    name, text = tape.names.get(op.result, ""), show_op(tape, op)
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 40]} ... {text[-36:]}"
    note = text if shown != text else f"called {name}" if name else ""
    return Row("", plain(shown), str(op.result), reads, note, groups.get(op.result, ""))


def _groups(made: Generated, stands_for: Mapping[int, set[int]]) -> dict[int, str]:
    """The fusion group of each op, or the groups of the ops that it became."""
    found: dict[int, str] = {}
    number = 0
    for unit in made.lowered.units if made.lowered else ():
        if unit.extent:
            number += 1
            for member in unit.members:
                found.setdefault(stamp(member.op), f"group {number}")
    for op, others in stands_for.items():
        groups = {found.get(other, "") for other in others}
        if op not in others and len(groups) == 1:
            found.setdefault(op, groups.pop())
    return found


def _cards(found: Reversed, known: Registry) -> tuple[Card, ...]:
    """The rules of the function's ops, in order of first use."""
    uses: dict[Rule, list[int]] = {}
    rule_of: dict[int, Rule] = {}
    for op in found.tape.ops:
        rule = rule_of.get(found.primal[op.result]) if op.result in found.primal else _rule(op, found.tape, known)
        if rule is not None:
            rule_of[op.result] = rule
            uses.setdefault(rule, []).append(op.result)
    return tuple(_card(rule, ops, found.primal) for rule, ops in uses.items())


def _rule(op: Op, tape: Tape, known: Registry) -> Rule | None:
    try:
        return known.rule(op.name, [tape.types[operand].ndim for operand in op.operands])
    except MissingRuleError:
        return None


def _card(rule: Rule, ops: Iterable[int], primal: Mapping[int, int]) -> Card:
    listed = list(ops)
    kinds = Counter("adjoint" if op in primal else "primal" for op in listed)
    uses = f"{kinds['primal']} op{'' if kinds['primal'] == 1 else 's'}, {kinds['adjoint']} for derivatives"
    rows = tuple(Row("", line) for line in pieces(rule.source.rstrip() + "\n"))
    return Card(rule.name, f"{rule.file}:{rule.line}", uses, " ".join(map(str, listed)), rows)


def _code(made: Generated, stands_for: Mapping[int, set[int]]) -> tuple[Row, ...]:
    """The generated code; an op without lines of its own is linked to those of the ops that it became."""
    lines = {number: set(origins) for number, origins in made.lines.items()}
    at: dict[int, list[int]] = defaultdict(list)
    for number, origins in made.lines.items():
        for origin in origins:
            at[origin].append(number)
    further: dict[int, set[int]] = defaultdict(set)
    for variable, others in stands_for.items():
        if variable not in others and len(others) <= _NEAR:
            for number in (number for other in others for number in at[other]):
                further[number].add(variable)
    for number, variables in further.items():
        if len(variables) <= MOST:
            lines[number] |= variables
    rows = [line for part in made.parts for line in pieces(part.text, part.language)]
    return tuple(
        Row(str(number), line, " ".join(map(str, sorted(lines.get(number, ()))))) for number, line in enumerate(rows, 1)
    )


def _stands_for(made: Generated, tape: Tape) -> dict[int, set[int]]:
    """For each op the ops with lines of their own that represent it: itself, or the nearest that it became."""
    shown = {origin for origins in made.lines.values() for origin in origins}
    users: dict[int, list[int]] = defaultdict(list)
    for op in tape.ops:
        for operand in op.operands:
            users[operand].append(op.result)
    found: dict[int, set[int]] = {}
    for op in reversed(tape.ops):
        own = {op.result} if op.result in shown else set()
        found[op.result] = own or {each for user in users[op.result] for each in found.get(user, ())}
    return found


_LONGEST = 100
"""Number of shown characters of an op; hovering shows the rest."""
_NEAR = 8
"""Largest number of ops that may represent one without a line of its own."""


TARGETS = ("numpy", "c", "cuda")
"""Targets that a report supports."""


def page(f: Callable[..., Any], args: Any, *, target: str = "numpy", wrt: Wrt = None, strict: bool = False) -> str:
    """The tape explorer for ``f``, as the text of one HTML file.

    Parameters
    ----------
    f
        A plain NumPy function.
    args
        Specs or values of its arguments; see `yota.generate`. Named sizes have small values.
    target
        Target of the code: ``"numpy"``, ``"c"`` or ``"cuda"``.
    wrt
        Arguments to differentiate by; see `yota.generate`.
    strict
        Whether the value equals NumPy's bit for bit; see `yota.grad`.

    Raises
    ------
    ArgumentError
        If an argument, its spec, or the target is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> def energy(x):
    ...     return np.sum(x**2)
    >>> page(energy, {"x": "float64[3]"}).splitlines()[0]
    '<!doctype html>'
    """
    if target not in TARGETS:
        raise ArgumentError(f"target={target!r} is not known; code can be shown for: 'numpy', 'c', 'cuda'")
    call, sizes = call_of(f, args).at_some_size()
    subject = subject_of(replace(call, rolls=target != "cuda"), wrt, sizes)
    text = render("report/page.html.jinja", report=report_of(subject, sizes, target=target, strict=strict))
    # An ASCII file does not depend on the encoding.
    return text.encode("ascii", "xmlcharrefreplace").decode()
