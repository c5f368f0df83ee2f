"""Rules of `simplify` for sums, matrix products and einsums: what is common leaves them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from yota.optimize.case import Case, Rule

_MOST_FACTORS = 5
_SMALL_PRODUCT = 32
"""Up to this many multiplications in each of many small products, a loop over elements is quicker than BLAS."""


def _elementwise(case: Case) -> int | None:
    """An einsum whose factors, multiplied, are no larger than the largest of them."""
    inputs, output = str(case.keyword("subscripts")).split("->")
    terms = inputs.split(",")
    types = [case.type_of(operand) for operand in case.operands]
    if case.type.dtype.kind not in "fc" or any(type.dtype != case.type.dtype for type in types):
        return None
    if any(len(set(letters)) != len(letters) for letters in (*terms, output)):
        return None
    shapes = [type.shape for type in types]
    extents = dict(zip("".join(terms), (extent for shape in shapes for extent in shape), strict=True))
    if not math.prod(extents.values()):
        return None
    if _is_product(terms, output, extents):
        return None
    largest = max(terms, key=lambda term: math.prod(extents[letter] for letter in term))
    order = largest + "".join(letter for letter in extents if letter not in largest)
    found = _factor(case, case.operands[0], terms[0], order, extents)
    for operand, term in zip(case.operands[1:], terms[1:], strict=True):
        found = case.make("multiply", (found, _factor(case, operand, term, order, extents)))
    return _summed(case, found, order, output, extents)


def _in_pairs(case: Case) -> int | None:
    """An einsum of several factors as einsums of two, in the order with the fewest multiplications."""
    inputs, output = str(case.keyword("subscripts")).split("->")
    terms = inputs.split(",")
    types = [case.type_of(operand) for operand in case.operands]
    if not 2 < len(terms) <= _MOST_FACTORS or case.type.dtype.kind not in "fc":
        return None
    if any(type.dtype != case.type.dtype for type in types) or any(len(set(each)) != len(each) for each in terms):
        return None
    shapes = (extent for type in types for extent in type.shape)
    extents = {letter: int(extent) for letter, extent in zip("".join(terms), shapes, strict=True)}
    factors = list(zip(terms, case.operands, strict=True))
    for left, right in _order(tuple(terms), output, extents)[1]:
        (one, first), (two, second) = factors[left], factors[right]
        factors = [each for place, each in enumerate(factors) if place not in (left, right)]
        made = _contracted(one, two, [term for term, _ in factors], output) if factors else output
        factors.append((made, case.make("einsum", (first, second), {"subscripts": f"{one},{two}->{made}"})))
    return factors[0][1]


def _of_transposed(case: Case) -> int | None:
    """A transposed factor is the factor with its letters in another order."""
    inputs, output = str(case.keyword("subscripts")).split("->")
    terms, operands = inputs.split(","), list(case.operands)
    for place, (term, operand) in enumerate(zip(terms, case.operands, strict=True)):
        inner = case.definition(operand, "transpose")
        if inner is not None:
            order = np.argsort(inner.keyword("axes"))
            terms[place], operands[place] = "".join(term[axis] for axis in order), inner.operands[0]
    if operands == list(case.operands):
        return None
    return case.make("einsum", operands, {"subscripts": f"{','.join(terms)}->{output}"}, case.type)


def _of_diagonal(case: Case) -> int | None:
    """The product with a diagonal matrix multiplies each row, or column, by one number."""
    inputs, output = str(case.keyword("subscripts")).split("->")
    terms = inputs.split(",")
    if len(terms) != 2 or case.type.dtype.kind not in "fc":
        return None
    for place, term in enumerate(terms):
        other = terms[1 - place]
        summed, kept = [[axis for axis in term if (axis in other) is inside] for inside in (True, False)]
        if (len(summed), len(kept)) != (1, 1) or summed[0] in output or kept[0] not in output:
            continue
        diagonal = _diagonal(case, case.operands[place])
        if diagonal is not None:
            subscripts = f"{other.replace(summed[0], kept[0])},{kept[0]}->{output}"
            return case.make("einsum", (case.operands[1 - place], diagonal), {"subscripts": subscripts}, case.type)
    return None


def _diagonal(case: Case, variable: int) -> int | None:
    """The diagonal of a multiple of the identity matrix, by numbers or by a number for each column; None otherwise."""
    type = case.type_of(variable)
    if len(type.shape) != 2 or type.shape[0] != type.shape[1] or type.dtype != case.type.dtype:
        return None
    size = type.shape[0]
    if variable in case.builder.constants:
        value = case.builder.constants[variable]
        return case.constant(np.ones(size, type.dtype)) if np.array_equal(value, np.eye(size)) else None
    op = case.definition(variable)
    if op is None or op.name not in ("multiply", "divide"):
        return None
    for matrix, factor in (op.operands, op.operands[::-1])[: 2 if op.name == "multiply" else 1]:
        given = case.type_of(factor)
        if given.dtype != type.dtype or given.shape not in ((), (size,), (1, size)):
            continue
        diagonal = _diagonal(case, matrix)
        if diagonal is not None:
            return case.make(op.name, (diagonal, case.make("reshape", (factor,), {"shape": given.shape[-1:]})))
    return None


def _contracted(one: str, two: str, rest: Sequence[str], output: str) -> str:
    """The letters that a product of two factors keeps for the others and the result."""
    wanted = set(output).union(*rest)
    return "".join(letter for letter in dict.fromkeys(one + two) if letter in wanted)


def _order(terms: tuple[str, ...], output: str, extents: dict[str, int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Costs and places of pairs, the best of all orders; of equal ones, that with the largest products first.

    The product takes the last place.
    """
    if len(terms) == 1:
        return [], []
    found = []
    for left, right in itertools.combinations(range(len(terms)), 2):
        rest = tuple(each for place, each in enumerate(terms) if place not in (left, right))
        cost = math.prod(extents[letter] for letter in {*terms[left], *terms[right]})
        made = _contracted(terms[left], terms[right], rest, output)
        costs, pairs = _order((*rest, made), output, extents)
        found.append(([cost, *costs], [(left, right), *pairs]))
    return min(found, key=lambda each: (sum(each[0]), [-cost for cost in each[0]]))


def _is_product(terms: Sequence[str], output: str, extents: dict[str, int]) -> bool:
    """Whether BLAS, or an order of pairwise products, does better than one multiplication for each element."""
    if all(set(term) <= set(output) for term in terms):
        return False
    whole = math.prod(extents.values())
    if whole > max(math.prod(extents[letter] for letter in term) for term in terms):
        batch = set(output).intersection(*map(set, terms))
        return len(terms) != 2 or whole > _SMALL_PRODUCT * math.prod(extents[letter] for letter in batch) or not batch
    if len(terms) != 2:
        return False
    left, right = map(set, terms)
    batch = left & right & set(output)
    if not batch:
        return bool(left | right)
    # Matrices by vectors, one each for many points.
    small = whole <= _SMALL_PRODUCT * math.prod(extents[letter] for letter in batch)
    return left != right and not small


def _factor(case: Case, operand: int, term: str, order: str, extents: dict[str, int]) -> int:
    """An operand with its axes in ``order``, and axes of extent 1 where it has none."""
    present = [letter for letter in order if letter in term]
    axes = tuple(term.index(letter) for letter in present)
    if axes != tuple(range(len(axes))):
        operand = case.make("transpose", (operand,), {"axes": axes})
    if not term:
        return operand
    # Broadcasting puts axes in front by itself.
    shape = tuple(extents[letter] if letter in term else 1 for letter in order[order.index(present[0]) :])
    if case.type_of(operand).shape == shape:
        return operand
    return case.make("reshape", (operand,), {"shape": shape})


def _summed(case: Case, product: int, order: str, output: str, extents: dict[str, int]) -> int:
    shape = tuple(extents[letter] for letter in order)
    if case.type_of(product).shape != shape:
        product = case.make("broadcast_to", (product,), {"shape": shape})
    axes = tuple(axis for axis, letter in enumerate(order) if letter not in output)
    if axes:
        product = case.make("sum", (product,), {"axis": axes, "keepdims": False})
    kept = [letter for letter in order if letter in output]
    turned = tuple(kept.index(letter) for letter in output)
    if turned != tuple(range(len(turned))):
        product = case.make("transpose", (product,), {"axes": turned})
    return product


def _sum_of_broadcast(case: Case) -> int | None:
    """Each axis that was broadcast contributes its extent as a factor."""
    (operand,) = case.operands
    inner = case.definition(operand, "broadcast_to")
    if inner is None or case.type.dtype.kind not in "fc" or case.type_of(operand).dtype != case.type.dtype:
        return None
    (source,) = inner.operands
    shape, small = case.type_of(operand).shape, case.type_of(source).shape
    lead = len(shape) - len(small)
    axes, times = [], 1
    for axis in case.keyword("axis"):
        if axis < lead or small[axis - lead] == 1:
            if type(shape[axis]) is not int:
                return None  # a number of the tape is the same at all sizes
            times *= shape[axis]
        if axis >= lead:
            axes.append(axis - lead)
    total = source
    if axes:
        total = case.make("sum", (source,), {"axis": tuple(axes), "keepdims": False})
    if times != 1:
        total = case.make("multiply", (total, case.constant(float(times))))
    if case.type_of(total).dtype != case.type.dtype:
        return None
    return _shaped(case, total, tuple(sorted(case.keyword("axis"))))


def _shaped(case: Case, total: int, axes: tuple[int, ...]) -> int:
    """Bring a reduced value to this op's shape: kept axes back in, broadcast leading ones again."""
    shape = case.type_of(case.operands[0]).shape
    bare = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    if case.type_of(total).shape != bare:
        total = case.make("broadcast_to", (total,), {"shape": bare})
    if case.type.shape != bare:
        total = case.make("reshape", (total,), {"shape": case.type.shape})
    return total


def _sum_of_one(case: Case) -> int | None:
    """A sum over axes with one element each; only NumPy's starts from 0, which takes the sign from -0.0."""
    (operand,) = case.operands
    shape = case.type_of(operand).shape
    if any(shape[axis] != 1 for axis in case.keyword("axis")) or case.type_of(operand).dtype != case.type.dtype:
        return None
    return case.make("reshape", (operand,), {"shape": case.type.shape}, case.type)


def _sum_of_multiple(case: Case) -> int | None:
    """``sum(s * x)`` for a scalar ``s``: one product instead of as many as ``x`` has elements."""
    (operand,) = case.operands
    inner = case.definition(operand)
    if inner is None or not case.single(operand) or case.type_of(operand).dtype != case.type.dtype:
        return None
    if inner.name == "negative":
        return case.make("negative", (case.make("sum", inner.operands, case.static, case.type),), (), case.type)
    if inner.name != "multiply" or case.type.dtype.kind not in "fc":
        return None
    for scalar, array in (inner.operands, inner.operands[::-1]):
        if case.type_of(scalar).shape or case.type_of(array).shape != case.type_of(operand).shape:
            continue
        if case.type_of(array).dtype == case.type.dtype and case.type_of(array).shape:
            total = case.make("sum", (array,), case.static, case.type)
            return case.make("multiply", (scalar, total), (), case.type)
    return None


def _matmul_of_broadcast(case: Case) -> int | None:
    """A matrix whose rows (or, on the right, columns) are all equal multiplies as one row (or column)."""
    left, right = case.operands
    a, b = case.type_of(left).shape, case.type_of(right).shape
    if len(a) != 2 or len(b) != 2 or case.type.dtype.kind not in "fc":
        return None
    for variable, is_left in ((left, True), (right, False)):
        inner = case.definition(variable, "broadcast_to")
        if inner is not None and case.type_of(variable).dtype == case.type.dtype:
            found = _product_of_broadcast(case, inner.operands[0], right if is_left else left, is_left)
            if found is not None:
                return found
    return None


def _product_of_broadcast(case: Case, source: int, other: int, is_left: bool) -> int | None:
    if case.type_of(other).dtype != case.type.dtype:
        return None
    shape = (1,) * (2 - len(case.type_of(source).shape)) + case.type_of(source).shape
    summed, kept = (1, 0) if is_left else (0, 1)
    full = {"shape": case.type.shape}
    if shape[summed] == 1:
        # All along the contracted axis is equal: it leaves the sum.
        total = case.make("sum", (other,), {"axis": (kept,), "keepdims": True})
        column = case.make("reshape", (source,), {"shape": shape}) if shape[kept] != 1 else source
        product = case.make("multiply", (column, total))
        return case.make("broadcast_to", (product,), full, case.type)
    if shape[kept] == 1:
        vector = case.make("reshape", (source,), {"shape": shape})
        pair = (vector, other) if is_left else (other, vector)
        product = case.make("matmul", pair)
        return case.make("broadcast_to", (product,), full, case.type)
    return None


def _multiple(case: Case) -> int | None:
    """A product with a matrix of a single element multiplies by that."""
    shapes = [case.type_of(operand).shape for operand in case.operands]
    if (1, 1) not in shapes or any(len(shape) != 2 for shape in shapes) or case.type.dtype.kind not in "fc":
        return None
    return case.instead("multiply", *case.operands)


def _turned_product(case: Case) -> int | None:
    """``(a @ b).T`` is ``b.T @ a.T``, and comes out in the order in memory that results have."""
    (operand,) = case.operands
    inner = case.definition(operand, "matmul")
    if inner is None or case.keyword("axes") != (1, 0) or not case.single(operand):
        return None
    if any(len(case.type_of(factor).shape) != 2 for factor in inner.operands):
        return None
    left, right = (case.make("transpose", (factor,), {"axes": (1, 0)}) for factor in inner.operands)
    return case.make("matmul", (right, left), (), case.type)


def _common_factor(case: Case) -> int | None:
    """``a @ b + a @ c`` to ``a @ (b + c)``, where nobody else reads the products."""
    if len(case.type.shape) != 2 or case.operands[0] == case.operands[1] or not all(map(case.single, case.operands)):
        return None
    one, two = [case.definition(operand, "matmul") for operand in case.operands]
    if one is None or two is None or case.type.dtype.kind not in "fc":
        return None
    if {case.type_of(operand) for operand in case.operands} != {case.type}:
        return None
    for shared, other in ((0, 1), (1, 0)):
        rest = one.operands[other], two.operands[other]
        first, second = map(case.type_of, rest)
        if one.operands[shared] != two.operands[shared] or first != second or first.dtype != case.type.dtype:
            continue
        total = case.make(case.primitive, rest, (), first)
        common = one.operands[shared]
        return case.make("matmul", (total, common) if shared else (common, total), (), case.type)
    return None


LOOSE: dict[str, tuple[Rule, ...]] = {
    "einsum": (_of_transposed, _of_diagonal, _elementwise, _in_pairs),
    "sum": (_sum_of_one, _sum_of_broadcast, _sum_of_multiple),
    "matmul": (_matmul_of_broadcast, _multiple),
    "transpose": (_turned_product,),
    "add": (_common_factor,),
    "subtract": (_common_factor,),
}
