"""Derivative matrices by pullbacks, many rows at once if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from yota.api.batch import batch
from yota.api.gradients import gradient, value_and_grad
from yota.api.products import hvp
from yota.api.pullbacks import weighted
from yota.errors import ArgumentError, DifferentiationError, StaleTapeError, YotaError
from yota.ir.callables import name_of
from yota.run.derivatives.joint import as_vector
from yota.run.device import beside, computed, joined, stacked
from yota.run.gradient_layout import Wanted
from yota.run.options import Dynamic
from yota.run.specialise import Instead, Target
from yota.structures import is_on_device
from yota.tracing.results import ResultForm, parted

_MOST = 64
"""Rows computed at once; measurements show no gain from more."""
_FEW = 4
"""Largest number of Hessian rows for which single products are as fast."""
_MOST_ELEMENTS = 1 << 20
"""Largest array size with the additional axis for rows, a bound on memory and cache use."""


class Rows:
    """All partial derivatives of ``function`` by the argument at ``position``.

    size: size of the largest intermediate array, which determines the number of rows at once; 0 for scalar code, which
        is fastest row by row.
    """

    def __init__(
        self, function: Callable[..., Any], position: int, wanted: Wanted, target: Target, dynamic: Dynamic, size: int
    ) -> None:
        if wanted.sparse:
            name = name_of(function)
            raise ArgumentError(
                f"{name} works on arrays as a whole, or is too long to be written out entry by entry, so that its "
                "pattern of zeros is not known; leave sparse=True out"
            )
        self.position, self.wanted, self._size, self._given = position, wanted, size, function
        function = as_vector(function) if wanted.order == 1 else function
        options: dict[str, Any] = {"target": target.name, "strict": target.strict, "dynamic": dynamic}
        self._first, self._many = None, None
        if wanted.order == 2:
            self._row = hvp(function, position, **options)
            self._first = value_and_grad(function, position, **options) if wanted.with_value else None
        else:
            self._row = gradient(weighted(function), position + 1, **options)
        if size:
            self._many = batch(self._row, over=-1 if wanted.order == 2 else 0, **options)
        self._parts = [each for each in (self._many, self._row, self._first) if each is not None]

    def __call__(self, *args: Any) -> Any:
        """The matrix, with values before it if requested."""
        forms: list[ResultForm] = []
        matrix, value = self._matrix(forms, *args)
        if self._first is not None:
            return *self._first(*args), matrix
        found = (*forms[-1:] * self.wanted.joined, *[value] * self.wanted.with_value, matrix)
        return found if len(found) > 1 else matrix

    def parts(self) -> Sequence[Any]:
        """The compiled functions."""
        return self._parts

    def _matrix(self, forms: list[ResultForm], *args: Any) -> tuple[Any, Any]:
        by = args[self.position]
        if self.wanted.order == 1:
            flat = parted(self._given, forms, joined=True)
            value = computed(lambda *values: flat(*values)[0], args)
            if forms[-1].is_structured and not self.wanted.joined:
                raise Instead(None)
        else:
            # A Hessian has one row for each element of the argument, of the argument's shape.
            value = stacked([by])[0]
        shape = (*value.shape, *np.shape(by))
        if not value.size:
            return beside(by, np.zeros(shape)) if is_on_device(by) else np.zeros(shape, np.asarray(by).dtype), value
        rows = [self._rows(value, seeds, args)[:count] for seeds, count in self._seeds(value, by)]
        return (rows[0] if len(rows) == 1 else joined(rows)).reshape(shape), value

    def _seeds(self, value: Any, by: Any) -> Iterator[tuple[np.ndarray, int]]:
        """Blocks of cotangents for all rows, of equal lengths, the last padded with zeros; and the number of rows."""
        most = max(1, min(_MOST, _MOST_ELEMENTS // max(1, self._size, value.size, np.size(by))))
        length = -(-value.size // -(-value.size // most))
        for first in range(0, value.size, length):
            count = min(length, value.size - first)
            seeds = np.zeros((length, value.size), value.dtype if value.dtype.kind in "fc" else float)
            seeds[np.arange(count), np.arange(first, first + count)] = 1.0
            yield seeds.reshape(length, *value.shape), count

    def _pulled(self, value: Any, seeds: np.ndarray, args: tuple[Any, ...]) -> Any:
        """A row for each seed."""
        there = beside(value, seeds) if is_on_device(value) else seeds
        if self._many is not None and len(seeds) > (_FEW if self.wanted.order == 2 else 1):
            try:
                return self._many(*self._called(there, args))
            except StaleTapeError:
                raise
            except YotaError:
                # Not every function can be batched.
                self._many = None
        return stacked([self._row(*self._called(seed, args)) for seed in there])

    def _called(self, seed: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments of a pullback or product: the seed before the arguments, or after them."""
        return (*args, seed) if self.wanted.order == 2 else (seed, *args)

    def _rows(self, value: Any, seeds: np.ndarray, args: tuple[Any, ...]) -> Any:
        """Rows: the gradient of a real value, or the complex derivative of a complex one."""
        first = self._pulled(value, seeds, args)
        if value.dtype.kind != "c":
            return first
        second = self._pulled(value, 1j * seeds, args)
        if first.dtype.kind != "c":
            return first + 1j * second
        if not first.size:
            return first
        # For a pullback conj(J) s + K conj(s) the two agree if K, the derivative by the conjugate, is zero.
        axes = tuple(range(1, first.ndim))
        scale = np.max(np.abs(first), axis=axes, keepdims=True)
        if np.any(np.abs(second - 1j * first) > np.sqrt(np.finfo(first.dtype).eps) * scale):
            raise DifferentiationError(
                "the function is not holomorphic: by a complex argument it has no complex derivative. Take the real "
                "and the imaginary part of the argument as two arguments."
            )
        return np.conjugate(first)
