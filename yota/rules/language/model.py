"""Rules as data: what a rule file says, after parsing and before anything is proved or expanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias
from typing import Literal as OneOf


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, boolean, None, or a tuple of such."""

    value: Any


def as_written(value: float) -> Fraction:
    """The number that a literal stands for in a formula: what is written, and not the double nearest to it.

    >>> as_written(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(value)))


@dataclass(frozen=True, slots=True)
class Name:
    """A parameter, a result, or the loop index of a variadic parameter."""

    id: str


@dataclass(frozen=True, slots=True)
class Adjoint:
    """``d[y]``: the adjoint of the result ``of``."""

    of: str


@dataclass(frozen=True, slots=True)
class Call:
    """A primitive, a macro or a static function applied to arguments; operators are calls too."""

    function: str
    arguments: tuple[Expression, ...]
    keywords: tuple[tuple[str, Expression], ...] = ()

    @property
    def inside(self) -> tuple[Expression, ...]:
        """The arguments, those by keyword too."""
        return (*self.arguments, *(argument for _, argument in self.keywords))


@dataclass(frozen=True, slots=True)
class Item:
    """``xs[i]``: one of a variadic parameter's arrays."""

    name: str
    index: str


@dataclass(frozen=True, slots=True)
class Spread:
    """``*xs`` among a call's arguments: all of a variadic parameter's arrays."""

    name: str


Expression: TypeAlias = Literal | Name | Adjoint | Call | Item | Spread


def refusal(expression: Expression | None) -> str | None:
    """Why there is no derivative, if that is what a right-hand side says: a string in the place of a formula.

    >>> refusal(Literal("no closed form")), refusal(Literal(0))
    ('no closed form', None)
    """
    return expression.value if isinstance(expression, Literal) and isinstance(expression.value, str) else None


def is_zero(expression: Expression) -> bool:
    """Whether an expression is the number 0."""
    return isinstance(expression, Literal) and type(expression.value) in (int, float) and expression.value == 0


@dataclass(frozen=True, slots=True)
class Domain:
    """The set an argument ranges over.

    ``kind`` is ``real``, ``complex``, ``integer``, ``boolean`` or ``array``; ``low`` and ``high`` bound a real
    or integer set; ``dimensions`` names an array's axes or gives their extents, ``"..."`` for any number of leading
    ones, and is None for an array of any shape. ``is_real`` says that an array has no complex elements.
    """

    kind: OneOf["real", "complex", "integer", "boolean", "array"]
    low: float = float("-inf")
    high: float = float("inf")
    dimensions: tuple[str | int, ...] | None = None
    is_real: bool = False

    def accepts(self, ndim: int) -> bool:
        """Whether an operand with ``ndim`` axes fits."""
        if self.dimensions is None:
            return True
        if self.dimensions and self.dimensions[0] == "...":
            return ndim >= len(self.dimensions) - 1
        return ndim == len(self.dimensions)

    def meets(self, other: Domain) -> bool:
        """Whether some number of axes fits both."""
        counts = range(max(len(each.dimensions or ()) for each in (self, other)) + 1)
        return any(self.accepts(count) and other.accepts(count) for count in counts)

    def has_extents(self, shape: tuple[int, ...]) -> bool:
        """Whether an operand of this shape, which has as many axes, has the extents that are numbers."""
        pairs = zip(reversed(self.dimensions or ()), reversed(shape), strict=False)
        return all(not isinstance(wanted, int) or wanted == extent for wanted, extent in pairs)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: an operand when ``domain`` is given, else a static keyword; either may have a default."""

    name: str
    domain: Domain | None
    default: Expression | None = None
    variadic: bool = False

    @property
    def moves(self) -> bool:
        """Whether it is an operand that a function may have a derivative by: no index, no condition."""
        return self.domain is not None and self.domain.kind not in ("integer", "boolean")


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """One ``def`` of a rule file.

    target: dotted name of the Python function it stands for, or None.
    parameters: operands first, then static keywords.
    primal: expression of each result, for a rule that defines its function.
    parts: locals, by name: expressions that the right-hand sides below them hold.
    shared: expression of each result in terms of `parts`, of real operands: it takes the place of the function where a
        part is computed anyway.
    equation: for an ``@implicit`` rule: what is 0 where the result is the function's value; None for other rules.
    start: where Newton's method starts, for an ``@implicit`` rule that says so.
    solve: how the linear system of the adjoint is solved, for an ``@implicit`` rule of arrays that says so.
    partials: for an elementwise rule: ``(result, parameter) -> d result / d parameter`` of one element; a string in its
        place says why there is none.
    adjoints: for a tensor rule: ``parameter -> adjoint``; for a variadic parameter the expression holds for the item
        with index `loop`.
    kinks: conditions (``assert``) outside of which the function has no derivative.
    linear: name of the operand in which a function of a ``@linear`` rule is linear; empty for other rules.
    operands: parameters that are traced values.
    keywords: static parameters.
    """

    kind: OneOf["elementwise", "tensor", "nodiff"]
    name: str
    target: str | None
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    primal: Mapping[str, Expression] = field(default_factory=dict)
    partials: Mapping[tuple[str, str], Expression] = field(default_factory=dict)
    adjoints: Mapping[str, Expression] = field(default_factory=dict)
    loop: str | None = None
    kinks: tuple[Expression, ...] = ()
    doc: str = ""
    file: str = "<rules>"
    line: int = 0
    source: str = field(default="", repr=False)
    linear: str = ""
    parts: Mapping[str, Expression] = field(default_factory=dict)
    shared: Mapping[str, Expression] = field(default_factory=dict)
    equation: Expression | None = None
    start: Expression | None = None
    solve: str = ""
    operands: tuple[Parameter, ...] = field(init=False, repr=False, compare=False)
    keywords: tuple[Parameter, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Each op that is differentiated asks for them.
        for name, static in (("operands", False), ("keywords", True)):
            found = tuple(parameter for parameter in self.parameters if (parameter.domain is None) == static)
            object.__setattr__(self, name, found)

    @property
    def decorator(self) -> str:
        """The decorator, as it is written."""
        kind = "linear" if self.linear else "implicit" if self.equation is not None else self.kind
        solve = f', solve="{self.solve}"' if self.solve else ""
        return f'@{kind}("{self.target}"{solve})' if self.target else f"@{kind}"

    def overlaps(self, other: Rule) -> bool:
        """Whether some numbers of axes fit both rules.

        >>> vector = Rule("tensor", "f", None, (Parameter("x", Domain("array", dimensions=("k",))),), ("y",))
        >>> matrix = Rule("tensor", "f", None, (Parameter("x", Domain("array", dimensions=("...", "m", "k"))),), ("y",))
        >>> vector.overlaps(vector), vector.overlaps(matrix)
        (True, False)
        """
        most = max(len(self.operands), len(other.operands)) + 1
        counts = (count for count in range(most + 1) if self._takes(count) and other._takes(count))
        return any(all(self._set(n).meets(other._set(n)) for n in range(count)) for count in counts)

    def _takes(self, count: int) -> bool:
        """Whether there may be so many operands."""
        variadic = bool(self.operands) and self.operands[-1].variadic
        return count >= len(self.operands) - 1 if variadic else count == len(self.operands)

    def _set(self, position: int) -> Domain:
        return self.operands[min(position, len(self.operands) - 1)].domain or Domain("array")

    def matches(self, ndims: tuple[int, ...]) -> bool:
        """Whether this rule's pattern fits operands with these numbers of axes."""
        return self._takes(len(ndims)) and all(self._set(n).accepts(ndim) for n, ndim in enumerate(ndims))
