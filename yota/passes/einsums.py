"""Rules of `simplify` for einsums that are no matrix products: factors are multiplied element by element and summed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from yota.passes.case import Case, Rule

__all__ = ["LOOSE"]

_SMALL_PRODUCT = 32
"""Up to this many multiplications in each of many small products, a loop over elements is quicker than BLAS."""


def _elementwise(case: Case) -> int | None:
    """An einsum whose factors, multiplied, are no larger than the largest of them."""
    terms, output = _terms(case)
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


def _terms(case: Case) -> tuple[list[str], str]:
    inputs, output = str(case.keyword("subscripts")).split("->")
    return inputs.split(","), output


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


LOOSE: dict[str, tuple[Rule, ...]] = {"einsum": (_elementwise,)}
