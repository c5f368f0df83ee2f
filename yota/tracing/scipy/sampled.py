"""Functions that are given to SciPy's integrals, at many nodes at once."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import is_tracer, np
from yota.tracing.scipy.callbacks import around

_LARGEST = 2**22
"""Nodes of integrals that are evaluated at once."""
_AGREES = 1e-8


class Coarse(Exception):
    """One choice of nodes does not do for all integrals that are evaluated at once."""


def number_of(value: Any) -> Any:
    """What a value is, which may be traced."""
    return value._value() if is_tracer(value) else value


class Sampled:
    """A function for arrays of nodes: at once if it takes arrays, else one after another; None to find out.

    The nodes are along the first axis, and those of integrals around this one along further axes.
    """

    def __init__(self, function: Callable[[Any], Any], takes_arrays: bool | None = None) -> None:
        self._function, self.takes_arrays = function, takes_arrays

    def __call__(self, x: Any) -> Any:
        """The values at the nodes, one after another."""
        outer = around.get()
        shape = (len(x), *outer)
        found = self._at_once(x, shape) if self.takes_arrays in (True, None) else None
        if self.takes_arrays is None:
            self.takes_arrays = found is not None and self._agrees(x, number_of(found))
        if found is not None and self.takes_arrays:
            return found
        return np.stack([self._at(each, outer) for each in x])

    def _at_once(self, x: Any, shape: tuple[int, ...]) -> Any:
        if math.prod(shape) > _LARGEST:
            raise Coarse
        token = around.set(shape)
        try:
            found = self._function(x if np.ndim(x) == len(shape) else column(x, np.empty(shape[1:])))
        except (ValueError, TypeError, Coarse):
            return None
        finally:
            around.reset(token)
        with contextlib.suppress(ValueError):
            return np.broadcast_to(found, shape) if np.shape(found) != shape else found

    def _at(self, x: Any, outer: tuple[int, ...]) -> Any:
        """The value at one node, which is one number for each of those around it."""
        found = self._function(x)
        if not outer and np.size(found) == 1:
            return np.reshape(found, ())
        if not outer:
            raise TypeError("scipy.integrate.quad takes an integrand that gives one number")
        return np.broadcast_to(found, outer)

    def _agrees(self, x: Any, found: Any) -> bool:
        """Whether it gives the same for some nodes by themselves."""
        probes = [0, len(x) // 2, len(x) - 1]
        alone = [number_of(self._at_once(x[[place]], (1, *found.shape[1:]))) for place in probes]
        if any(each is None for each in alone):
            return False
        one = np.concatenate(alone)
        return bool(np.allclose(found[probes], one, rtol=_AGREES, atol=_AGREES * np.max(np.abs(one)), equal_nan=True))


def column(nodes: Any, other: Any) -> Any:
    """Nodes along a new axis before those of ``other``."""
    return np.reshape(nodes, (-1, *[1] * np.ndim(other)))
