"""The text of a rule file, the places of things in it and the errors that point there; and rules as text."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from yota.errors import RuleError
from yota.ir.primitive import BINARY, COMPARISONS
from yota.rules.language.model import Adjoint, Call, Domain, Expression, Item, Literal, Name, Parameter, Rule, Spread

_LEVELS = {**dict.fromkeys(COMPARISONS, 1), "add": 2, "subtract": 2, "power": 5}
"""How tightly operators bind; the others are products."""
_NEGATIVE = 4
_ATOM = 6


def walk(expression: Expression) -> Iterator[Expression]:
    """``expression`` and everything inside it, outermost first."""
    yield expression
    if isinstance(expression, Call):
        for argument in expression.inside:
            yield from walk(argument)


def show(expression: Expression) -> str:
    """Text of ``expression``.

    >>> show(Call("multiply", (Name("x"), Call("add", (Name("y"), Literal(1))))))
    'x * (y + 1)'
    """
    return _show(expression)[0]


def _show(expression: Expression) -> tuple[str, int]:
    if isinstance(expression, Literal):
        text = _literal(expression.value)
        return text, _NEGATIVE if text.startswith("-") else _ATOM
    if isinstance(expression, Name):
        return expression.id, _ATOM
    if isinstance(expression, Adjoint):
        return f"d[{expression.of}]", _ATOM
    if isinstance(expression, Item):
        return f"{expression.name}[{expression.index}]", _ATOM
    if isinstance(expression, Spread):
        return f"*{expression.name}", _ATOM
    return _call(expression)


def _call(call: Call) -> tuple[str, int]:
    if call.function in BINARY and len(call.arguments) == 2 and not call.keywords:
        sign, level = BINARY[call.function].sign, _LEVELS.get(call.function, 3)
        # Only the power binds to the right; comparisons do not chain at all.
        left = _within(call.arguments[0], level + (call.function == "power" or level == 1))
        right = _within(call.arguments[1], _NEGATIVE if call.function == "power" else level + 1)
        return f"{left} {sign} {right}" if level < 5 else f"{left}**{right}", level
    if call.function == "negative" and len(call.arguments) == 1:
        return f"-{_within(call.arguments[0], _NEGATIVE)}", _NEGATIVE
    arguments = [show(argument) for argument in call.arguments]
    arguments += [f"{name}={show(argument)}" for name, argument in call.keywords]
    if call.function == "tuple":
        return f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})", _ATOM
    return f"{call.function}({', '.join(arguments)})", _ATOM


def _within(expression: Expression, level: int) -> str:
    text, own = _show(expression)
    return text if own >= level else f"({text})"


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        for name, number in (("oo", math.inf), ("-oo", -math.inf), ("pi", math.pi), ("E", math.e)):
            if value == number:
                return name
    return repr(value)


def _domain(domain: Domain) -> str:
    name = f"{'Real' if domain.is_real else ''}{domain.kind.capitalize()}"
    if domain.dimensions is not None:
        return f"{name}[{', '.join(map(str, domain.dimensions))}]"
    if (domain.low, domain.high) == (-math.inf, math.inf):
        return name
    return f"{name}({_literal(domain.low)}, {_literal(domain.high)})"


def _parameter(parameter: Parameter) -> str:
    kind = "Static" if parameter.domain is None else _domain(parameter.domain)
    default = "" if parameter.default is None else f" = {show(parameter.default)}"
    return f"{'*' if parameter.variadic else ''}{parameter.name}: {kind}{default}"


def signature(rule: Rule) -> str:
    """The line that begins with ``def``, without its end.

    >>> signature(Rule("elementwise", "exp", None, (Parameter("x", Domain("real", 0.0)),), ("y",)))
    'def exp(x: Real(0.0, oo)) -> y:'
    """
    parts = [_parameter(parameter) for parameter in rule.operands]
    keywords = [_parameter(parameter) for parameter in rule.keywords]
    if keywords and not any(parameter.variadic for parameter in rule.operands):
        parts.append("*")
    results = rule.results[0] if len(rule.results) == 1 else f"({', '.join(rule.results)})"
    return f"def {rule.name}({', '.join(parts + keywords)}) -> {results}:"


def template(
    name: str,
    target: str,
    operands: int | Sequence[str],
    elementwise: bool,
    count: int = 1,
    keywords: Sequence[str] = (),
) -> str:
    """A rule to paste and fill in, for a function of ``count`` results; operands are named or counted.

    >>> print(template("f", "m.f", 1, True))
    @elementwise("m.f")
    def f(x: Real) -> y:
        d[y, x] = ...  # the partial of one element
    """
    names = list(operands) if not isinstance(operands, int) else [f"x{position}" for position in range(operands)]
    names = ["x"] if operands == 1 else names
    kind, domain = ("elementwise", "Real") if elementwise else ("tensor", "Array")
    parts = [*(f"{each}: {domain}" for each in names), *(["*", *keywords] if keywords else [])]
    parameters = ", ".join(parts)
    result = "y" if "y" not in names and not any(each.startswith("y:") for each in keywords) else "result"
    results = [result] if count == 1 else [f"{result}{position}" for position in range(count)]
    left = [f"d[{y}, {each}]" for each in names for y in results] if elementwise else [f"d[{each}]" for each in names]
    adjoint = f"the adjoint, linear in {' and '.join(f'd[{y}]' for y in results)}"
    what = "the partial of one element" if elementwise else adjoint
    shown = results[0] if count == 1 else f"({', '.join(results)})"
    lines = [f'@{kind}("{target}")', f"def {name}({parameters}) -> {shown}:"]
    return "\n".join([*lines, *(f"    {each} = ...  # {what}" for each in left)])


_LENGTH = 1_000_000
_STATEMENT = 2_000
_NESTING = 30
_QUOTED = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n]*"|\'[^\'\n]*\'|#[^\n]*')
_STRANGE = re.compile(r"[^\n\x20-\x7e]|\\")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_MARKS = re.compile(r"[()\[\]{}\n]")
_EXCERPT = 160
_QUOTE = 60


class Place(NamedTuple):
    """A line and a column, both from one; columns count characters."""

    line: int
    column: int


class Source:
    """A rule text and the places of what was read from it.

    text: the text; checked for size, characters and nesting before Python's parser sees it.
    first: line of the file on which the text begins.
    """

    def __init__(self, text: str, file: str, first: int = 1, longest: int = _STATEMENT) -> None:
        self.longest = longest
        self.file = file
        self.first = first
        self.text = text.replace("\r\n", "\n")
        self.lines = self.text.split("\n")
        # Things are kept with their places, so that no identity is used again.
        self._places: dict[int, tuple[Any, Place]] = {}
        self._admit()

    def mark(self, thing: Any, tree: ast.AST) -> Any:
        """Remember that ``thing`` was read from ``tree``, and give it back."""
        self._places[id(thing)] = (thing, self.place_of(tree))
        return thing

    def place(self, thing: Any) -> Place:
        """Where ``thing`` was read; the first line if it was not."""
        if isinstance(thing, Place):
            return thing
        if isinstance(thing, ast.AST):
            return self.place_of(thing)
        known = self._places.get(id(thing))
        return known[1] if known is not None and known[0] is thing else Place(1, 1)

    def place_of(self, tree: ast.AST) -> Place:
        """Place of a piece of syntax; ``ast`` counts columns in bytes."""
        line = getattr(tree, "lineno", 1)
        before = self._line(line).encode()[: getattr(tree, "col_offset", 0)]
        return Place(line, len(before.decode(errors="ignore")) + 1)

    def excerpt(self, tree: ast.AST) -> str:
        """Text of a piece of syntax, shortened to one line."""
        flat = " ".join((ast.get_source_segment(self.text, tree) or type(tree).__name__).split())
        return flat if len(flat) <= _QUOTE else f"{flat[: _QUOTE - 3]}..."

    def fault(self, thing: Any, what: str, *, found: str | None = None, write: str) -> RuleError:
        """The error at ``thing``: what is wrong, what was found (by default its text), and a line that mends it."""
        if found is None:
            found = self.excerpt(thing) if isinstance(thing, ast.AST) else show(thing)[:60]
        place = self.place(thing)
        line = self._line(place.line)
        column = min(place.column, len(line) + 1)
        # The window keeps the caret in sight on a very long line.
        start = max(0, column - _EXCERPT // 2) if len(line) > _EXCERPT else 0
        shown = "".join(char if char.isprintable() else "?" for char in line[start : start + _EXCERPT])
        return RuleError(
            f"{self.file}:{place.line + self.first - 1}:{column}: {what}\n"
            f"    {shown}\n    {' ' * (column - 1 - start)}^\n"
            f"found: {found}\n"
            f"write: {write}"
        )

    def _line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def _at(self, offset: int) -> Place:
        line = self.text.count("\n", 0, offset)
        return Place(line + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1)

    def _admit(self) -> None:
        """Refuse what could hurt Python's parser, or reads otherwise than it looks."""
        if len(self.text) > _LENGTH:
            raise self.fault(
                Place(1, 1), "the rule text is too long", found=f"{len(self.text)} characters", write="split the file"
            )
        code = _QUOTED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), self.text)
        strange = _CONTROL.search(self.text) or _STRANGE.search(code)
        if strange is not None:
            what = "this character is not allowed here"
            write = "ASCII letters, digits, operators, spaces and newlines"
            raise self.fault(self._at(strange.start()), what, found=ascii(strange.group()), write=write)
        self._measure(code)

    def _measure(self, code: str) -> None:
        depth = start = 0
        for match in _MARKS.finditer(code):
            mark = match.group()
            if mark in "([{":
                depth += 1
            elif mark in ")]}":
                depth = max(depth - 1, 0)
            if depth > _NESTING:
                raise self.fault(
                    self._at(match.start()),
                    "brackets are nested too deeply",
                    found=f"more than {_NESTING} open brackets",
                    write="a second function for the inner part, with a rule of its own",
                )
            if match.start() - start > self.longest:
                self._too_long(start)
            if mark == "\n" and not depth:
                start = match.end()
        if len(code) - start > self.longest:
            self._too_long(start)

    def _too_long(self, start: int) -> None:
        raise self.fault(
            self._at(start),
            "the statement is too long",
            found=f"more than {self.longest} characters; perhaps a bracket is left open",
            write="a second function for a part of it, with a rule of its own",
        )
