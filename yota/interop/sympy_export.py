"""Tapes as sympy formulas: each element of each variable as an expression of elements of the inputs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial, partialmethod
from typing import Any

import numpy as np
import sympy
from sympy.printing.mathml import mathml

from yota.errors import ArgumentError, YotaError
from yota.interop.expression_steps import CHAINS, FORMS, form
from yota.ir.access_maps import letters, spread, viewed
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.location import where
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.rules.algebras.emitted import expand
from yota.rules.algebras.sympy_functions import functions
from yota.rules.language.model import Call, Name
from yota.rules.registry import registry

_FEW = 4
"""Largest number of terms of a sum that is written out."""
_MOST_ELEMENTS = 16
"""Largest number of elements of an array that is written out."""
_MOST_PARTS = 400
"""Largest number of parts of a readable formula."""
_MOST_WALKED = 20_000
_Index = tuple[Any, ...]


def to_sympy(tape: Tape) -> Any:
    """The results of a tape as expressions; see `Tape.to_sympy`."""
    reading = _Elements(tape)
    found = tuple(_whole(reading, variable) for variable in tape.outputs)
    return found[0] if len(found) == 1 else found


def equations(tape: Tape) -> list[tuple[Any, Any]]:
    """The name and formula of each result; an array has indices."""
    reading, found = _Elements(tape, readable=True), []
    name = sympy.Symbol(tape.name if tape.name.isidentifier() else "f")
    inputs = {entry.place: entry.variable for entry in tape.inputs}
    for variable in tape.outputs:
        right, indices = reading.whole(variable)
        by = tape.names.get(variable, "").removeprefix("d_")
        if by in inputs and variable != tape.outputs[0]:
            left = sympy.Derivative(name, reading.symbol(inputs[by], indices), evaluate=False)
        else:
            left = sympy.Indexed(sympy.IndexedBase(str(name)), *indices) if indices else name
        if _is_longer(right, _MOST_PARTS):
            raise ArgumentError(f"the formula of {tape.name} is too long to be read; tape.to_sympy() gives it")
        found.append((left, right))
    return found


def latex(tape: Tape) -> str:
    """The results of a tape in LaTeX; see `Tape.latex`."""
    lines = [f"{sympy.latex(left)} &= {sympy.latex(right)}" for left, right in equations(tape)]
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def math_markup(tape: Tape) -> list[str]:
    """The formulas of a tape in MathML for browsers; empty if there are no readable ones."""
    try:
        found = [sympy.Eq(*sides, evaluate=False) for sides in equations(tape)]
        # sympy prints arrays of numbers in LaTeX only.
        return (
            []
            if any(each.has(sympy.NDimArray) for each in found)
            else [mathml(each, printer="presentation") for each in found]
        )
    except (YotaError, RecursionError):
        return []


def _is_longer(expression: Any, most: int) -> bool:
    """Whether an expression has more parts than the bound; repeated parts count repeatedly."""
    return any(number >= most for number, _ in enumerate(sympy.postorder_traversal(expression)))


def _whole(reading: _Elements, variable: int) -> Any:
    """A result, element by element or as a function of indices."""
    shape = reading.tape.types[variable].shape
    if not shape:
        return reading.element(variable, ())
    if math.prod(shape) > _MOST_ELEMENTS:
        return sympy.Lambda(*reversed(reading.whole(variable)))
    places = itertools.product(*map(range, shape))
    elements = [reading.element(variable, tuple(map(sympy.Integer, place))) for place in places]
    return (
        sympy.ImmutableMatrix(*shape, elements) if len(shape) == 2 else sympy.ImmutableDenseNDimArray(elements, shape)
    )


class _Elements:
    """Elements of the variables of a tape; an index is a number or a symbol."""

    def __init__(self, tape: Tape, *, readable: bool = False) -> None:
        self.tape = tape
        self._ops = tape.definitions()
        self._names: dict[int, str] = {}
        for entry in tape.inputs:
            name = entry.place
            if readable and not re.fullmatch(r"[\w.\[\]]+", name):
                # The keys of dicts must not contain LaTeX or MathML commands.
                name = re.sub("[^A-Za-z]", "", name)
                while not name or name in self._names.values():
                    name += "x"
            self._names[entry.variable] = name
        self._known: dict[tuple[int, _Index], Any] = {}
        for op in tape.ops:
            # In tape order, to avoid deep recursion for long tapes.
            if not tape.types[op.result].shape and op.access != AccessMap.ITEM:
                self.element(op.result, ())

    def whole(self, variable: int) -> tuple[Any, _Index]:
        """An array's element at symbolic indices, and these indices."""
        return self.over(len(self._shape(variable)), lambda indices: self.element(variable, indices))

    def over(self, count: int, body: Callable[[_Index], Any]) -> tuple[Any, _Index]:
        """An expression with this number of indices, and their symbols, which are unused letters."""
        own = tuple(sympy.Dummy(integer=True) for _ in range(count))
        found = sympy.sympify(body(own))
        if not count:
            return found, ()
        if _is_longer(found, _MOST_WALKED):
            raise ArgumentError(f"the formula of an array of {self.tape.name} is too long")
        taken = {*self._names.values(), *(each.name for each in found.atoms(sympy.Symbol) if each not in own)}
        letters = (f"{letter}{number or ''}" for number in itertools.count() for letter in "ijklmnpqr")
        names = itertools.islice((each for each in letters if each not in taken), count)
        symbols = tuple(sympy.Symbol(each, integer=True) for each in names)
        return found.xreplace(dict(zip(own, symbols, strict=True))), symbols

    def symbol(self, variable: int, index: _Index) -> Any:
        """An element of an input."""
        name = self._names[variable]
        return sympy.Indexed(sympy.IndexedBase(name), *index) if index else sympy.Symbol(name)

    def element(self, variable: int, index: _Index) -> Any:
        """An element of a variable."""
        key = variable, index
        if key not in self._known:
            try:
                self._known[key] = self._found(variable, index)
            except RecursionError:
                raise ArgumentError(f"{self.tape.name} is too long for a formula") from None
        return self._known[key]

    def _found(self, variable: int, index: _Index) -> Any:
        if variable in self._names:
            return self.symbol(variable, index)
        if variable in self.tape.constants:
            return self._constant(self.tape.constants[variable], index)
        op = self._ops[variable]
        structural = getattr(self, f"_{op.name}", None)
        if structural is not None:
            return structural(op, index)
        if not op.primitive.elementwise:
            raise self._refusal(op)
        return called(op.name, [self._broadcast(operand, index) for operand in op.operands])

    def _refusal(self, op: Op) -> ArgumentError:
        return ArgumentError(f"{where(op.location)}{op.name} of {self.tape.types[op.operands[0]]} has no formula here")

    def _shape(self, variable: int) -> tuple[int, ...]:
        return self.tape.types[variable].shape

    def _broadcast(self, variable: int, index: _Index) -> Any:
        return self.element(variable, spread(index, self._shape(variable), 0))

    def _constant(self, value: Any, index: _Index) -> Any:
        if not index:
            return _number(value)
        if all(getattr(each, "is_Integer", True) for each in index):
            return _number(value[tuple(map(int, index))])
        flat = value.ravel()
        if flat.size and (flat == flat[0]).all():
            return _number(flat[0])
        if value.ndim == 1 and value.size > 1 and (value[1:] - value[:-1] == value[1] - value[0]).all():
            return _number(value[0]) + _number(value[1] - value[0]) * index[0]
        if value.size <= _MOST_ELEMENTS:
            # Sympy reads no conditions from arrays.
            found = sympy.ImmutableDenseNDimArray([_number(each + 0) for each in flat], value.shape)[index]
            return sympy.Ne(found, 0) if value.dtype == bool else found
        raise ArgumentError(f"an array of {value.size} numbers has no formula")

    # -- ops on arrays, by name --------------------------------------------------------------------------

    def _reduced(self, joined: Callable[..., Any], long: Callable[..., Any] | None, op: Op, index: _Index) -> Any:
        shape = self._shape(op.operands[0])
        axis = op.keyword("axis")
        axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        rest = iter(each for place, each in enumerate(index) if not (op.keyword("keepdims") and place in axes))
        counted = [axis % len(shape) for axis in axes]
        if math.prod(shape[axis] for axis in counted) <= _FEW or long is None:
            if math.prod(shape[axis] for axis in counted) > _MOST_ELEMENTS:
                raise self._refusal(op)
            kept = [None if axis in counted else next(rest) for axis in range(len(shape))]
            places = itertools.product(*(range(shape[axis]) for axis in sorted(counted)))
            filled = [[next(each) if k is None else k for k in kept] for each in map(iter, places)]
            elements = (self.element(op.operands[0], tuple(map(sympy.sympify, each))) for each in filled)
            return joined(*map(_numeric, elements))
        outer = list(rest)

        def body(bound: _Index) -> Any:
            own, others = dict(zip(counted, bound, strict=True)), iter(outer)
            place = tuple(own[axis] if axis in own else next(others) for axis in range(len(shape)))
            return _numeric(self.element(op.operands[0], place))

        found, symbols = self.over(len(counted), body)
        return long(found, *((each, 0, shape[axis] - 1) for each, axis in zip(symbols, counted, strict=True)))

    _sum, _prod = partialmethod(_reduced, sympy.Add, sympy.Sum), partialmethod(_reduced, sympy.Mul, sympy.Product)
    _max, _min = partialmethod(_reduced, sympy.Max, None), partialmethod(_reduced, sympy.Min, None)

    def _accumulated(self, long: Any, op: Op, index: _Index) -> Any:
        axis = op.keyword("axis")

        def body(bound: _Index) -> Any:
            return self.element(op.operands[0], (*index[:axis], *bound, *index[axis + 1 :]))

        found, (symbol,) = self.over(1, body)
        return long(found, (symbol, 0, index[axis]))

    _cumsum, _cumprod = partialmethod(_accumulated, sympy.Sum), partialmethod(_accumulated, sympy.Product)

    def _einsum(self, op: Op, index: _Index) -> Any:
        if "." in op.keyword("subscripts", ""):
            raise self._refusal(op)
        return self._contracted(op.operands, *letters(op, [len(self._shape(each)) for each in op.operands]), index)

    _matmul = _einsum

    def _contracted(self, operands: Sequence[int], subscripts: Sequence[str], output: str, index: _Index) -> Any:
        """A sum of products of elements over the indices that are not in the result."""
        shapes = [self._shape(each) for each in operands]
        extents: dict[str, int] = {}
        for names, shape in zip(subscripts, shapes, strict=True):
            for name, n in zip(names, shape, strict=True):
                extents[name] = max(extents.get(name, 1), n)
        summed = [name for name in extents if name not in output]

        def body(bound: _Index) -> Any:
            places = dict(zip((*output, *summed), (*index, *bound), strict=True))
            parts = zip(operands, subscripts, shapes, strict=True)
            return sympy.Mul(
                *(self.element(each, spread([places[name] for name in own], shape, 0)) for each, own, shape in parts)
            )

        counts = [extents[name] for name in summed]
        if math.prod(counts) <= _FEW:
            return sympy.Add(*map(body, itertools.product(*(map(sympy.Integer, range(n)) for n in counts))))
        found, symbols = self.over(len(summed), body)
        return sympy.Sum(found, *((each, 0, n - 1) for each, n in zip(symbols, counts, strict=True)))

    def _reshape(self, op: Op, index: _Index) -> Any:
        old, new = self._shape(op.operands[0]), self._shape(op.result)
        if [n for n in old if n != 1] == [n for n in new if n != 1]:
            rest = iter([each for each, n in zip(index, new, strict=True) if n != 1])
            return self.element(op.operands[0], tuple(sympy.Integer(0) if n == 1 else next(rest) for n in old))
        flat, place = sympy.Integer(0), []
        for each, n in zip(index, new, strict=True):
            flat = flat * n + each
        for n in reversed(old):
            known = flat.is_Integer
            place.append(flat % n if known else sympy.Mod(flat, n))
            flat = flat // n if known else sympy.floor(flat / n)
        return self.element(op.operands[0], tuple(reversed(place)))

    def _transpose(self, op: Op, index: _Index) -> Any:
        return self.element(op.operands[0], viewed(op, index, self._shape(op.operands[0]), 0))

    _broadcast_to = _transpose

    def _astype(self, op: Op, index: _Index) -> Any:
        return _numeric(self.element(op.operands[0], index))

    def _conjugate(self, op: Op, index: _Index) -> Any:
        found = self._broadcast(op.operands[0], index)
        return sympy.conjugate(found) if self.tape.types[op.operands[0]].is_complex else found

    def _positive(self, op: Op, index: _Index) -> Any:
        return self.element(op.operands[0], index)

    def _stack(self, op: Op, index: _Index) -> Any:
        axis = op.keyword("axis") % len(index)
        rest = (*index[:axis], *index[axis + 1 :])
        return _chosen([(sympy.Eq(index[axis], k), self.element(each, rest)) for k, each in enumerate(op.operands)])

    def _concatenate(self, op: Op, index: _Index) -> Any:
        axis = op.keyword("axis") % len(index)
        start = 0
        parts: list[tuple[Any, Any]] = []
        for each in op.operands:
            place = (*index[:axis], index[axis] - start, *index[axis + 1 :])
            start += self._shape(each)[axis]
            holds = index[axis] < start
            if holds == sympy.false or (parts and parts[-1][0] == sympy.true):
                continue
            parts.append((holds, self.element(each, place)))
        return _chosen(parts)

    def _getitem(self, op: Op, index: _Index) -> Any:
        rest, places, source = list(index), list(op.operands[1:]), []
        gathers = [self._shape(each) for each in places]
        if len(gathers) > 1:
            raise self._refusal(op)
        for entry in op.keyword("index"):
            if entry is NEWAXIS:
                rest.pop(0)
            elif entry is GATHER:
                own = tuple(rest.pop(0) for _ in gathers[0])
                source.append(self.element(places[0], own))
            else:
                source.append(entry.start + entry.step * rest.pop(0) if isinstance(entry, Slice) else entry)
        return self.element(op.operands[0], tuple(map(sympy.sympify, source)))

    def _setitem(self, op: Op, index: _Index) -> Any:
        if len(op.operands) > 2:
            raise self._refusal(op)
        holds, place = _placed(op.keyword("index"), index, self._shape(op.operands[0]))
        inside = self._broadcast(op.operands[1], place) if holds != sympy.false else 0
        return _chosen([(holds, inside), (sympy.true, self.element(op.operands[0], index))])

    def _scatter(self, op: Op, index: _Index) -> Any:
        indices = op.keyword("indices")
        if len(op.operands) != len(indices):
            raise self._refusal(op)
        return sympy.Add(
            *(self._piece(each, entry, index, op) for each, entry in zip(op.operands, indices, strict=True))
        )

    def _piece(self, piece: int, entry: Index, index: _Index, op: Op) -> Any:
        holds, place = _placed(entry, index, self._shape(op.result))
        return 0 if holds == sympy.false else _chosen([(holds, self._broadcast(piece, place)), (sympy.true, 0)])


def _placed(entries: Index, index: _Index, shape: Sequence[int]) -> tuple[Any, _Index]:
    """Whether an index selects an element, and its position among the selected elements."""
    tests, place, rest = [], [], iter(zip(index, shape, strict=True))
    for entry in entries:
        if entry is NEWAXIS:
            place.append(sympy.Integer(0))
            continue
        each, extent = next(rest)
        if not isinstance(entry, Slice):
            tests.append(sympy.Eq(each, entry))
            continue
        covered = range(*slice(entry.start, entry.stop, entry.step).indices(extent))
        place.append((each - entry.start) / sympy.Integer(entry.step))
        if abs(entry.step) != 1:
            tests.append(sympy.Eq(sympy.Mod(each - entry.start, abs(entry.step)), 0))
        low, high = (min(covered), max(covered)) if covered else (extent, -1)
        tests += [each >= low] * (low > 0) + [each <= high] * (high < extent - 1)
    return sympy.And(*tests), tuple(place)


def _chosen(parts: list[tuple[Any, Any]]) -> Any:
    """The first part whose condition holds."""
    known = [(value, holds) for holds, value in parts if holds != sympy.false]
    if known[0][1] == sympy.true or len(known) == 1:
        return known[0][0]
    return sympy.Piecewise(*known[:-1], (known[-1][0], True))


def _number(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, complex):
        return _number(value.real) + sympy.I * _number(value.imag)
    if not isinstance(value, float):
        return sympy.sympify(value)
    if not math.isfinite(value):
        return sympy.Float(value)
    if abs(value) == math.pi:
        return sympy.pi * int(math.copysign(1, value))
    near = Fraction(value).limit_denominator(1000)
    return sympy.Rational(near.numerator, near.denominator) if float(near) == value else sympy.Float(value)


@cache
def _functions() -> Mapping[str, Callable[..., Any]]:
    """Sympy functions by primitive names: those of rules, and those read as one primitive."""
    # Sympy also has plain functions named maximum and minimum.
    kinds = [(name, getattr(sympy, other, None)) for other, name in CHAINS.items()]
    found: dict[str, Any] = {name: kind for name, kind in kinds if isinstance(kind, type)}
    for name in FORMS:
        read = form(name)
        letters = [each.id for each in read.arguments if isinstance(each, Name)] if isinstance(read, Call) else []
        if letters and letters == list("abcd"[: len(read.arguments)]) and not read.keywords:  # type: ignore[union-attr]
            found[read.function] = getattr(sympy, name, None) or functions().get(read.function)  # type: ignore[union-attr]
    flat = ("floor", "ceil", "trunc", "rint")
    found |= {name: each for name, each in functions().items() if name not in flat}
    found["stop_gradient"] = lambda a: a
    found["where"] = lambda test, a, b: sympy.Piecewise((a, test), (b, True))
    found["fmax"], found["fmin"] = sympy.Max, sympy.Min
    # Symbols stand for finite numbers.
    found["isfinite"] = lambda a: sympy.S(sympy.S(a).is_finite is not False)
    found["isnan"] = lambda a: sympy.S(sympy.S(a) is sympy.nan)
    found["isinf"] = lambda a: sympy.S(sympy.S(a).is_infinite is True)
    found["signbit"] = lambda a: sympy.S(a) < 0
    for letter in "jyik":
        kind = getattr(sympy, f"bessel{letter}")
        found |= {f"{letter}v": kind, f"{letter}0": partial(kind, 0), f"{letter}1": partial(kind, 1)}
    return found


def called(name: str, arguments: Sequence[Any]) -> Any:
    """A primitive of expressions: sympy's own function, the primal of its rule, or an undefined function."""
    made = _functions().get(name)
    if made is not None and name in _ARITHMETIC:
        arguments = [*map(_numeric, arguments)]
        pieces = [each for each in arguments if isinstance(each, sympy.Piecewise)]
        if name == "multiply" and len(pieces) == 1 and len(pieces[0].args) <= _FEW:
            # A mask selects the other factor or zero.
            others = [each for each in arguments if each is not pieces[0]]
            return sympy.Piecewise(*((sympy.Mul(each, *others), test) for each, test in pieces[0].args))
    if made is not None:
        return made(*arguments)
    rule = registry().rules(name)[0] if registry().knows(name) else None
    if rule is not None and len(rule.results) == 1 and rule.results[0] in rule.primal and not rule.keywords:
        names = dict(zip((each.name for each in rule.operands), arguments, strict=True))
        return expand(rule.primal[rule.results[0]], names, _Emitter(), registry())
    return sympy.Function(name)(*arguments)


_ARITHMETIC = frozenset("add subtract multiply divide negative power square".split())


def _numeric(value: Any) -> Any:
    """A condition as a number."""
    is_condition = isinstance(value, sympy.logic.boolalg.Boolean) and not isinstance(value, sympy.Symbol)
    return sympy.Piecewise((1, value), (0, True)) if is_condition else value


class _Emitter:
    """Evaluates rule bodies on expressions."""

    def emit(self, primitive: Any, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        """Apply a primitive to expressions."""
        return called(primitive.name, operands)

    def constant(self, value: Any) -> Any:
        """A numeric constant."""
        return _number(value)

    def type(self, handle: Any) -> TensorType:
        """The type of every expression is a real number."""
        return _REAL


_REAL = TensorType(np.dtype(float), ())
