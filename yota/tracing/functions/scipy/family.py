"""A distribution of one variable in standard form: its density, its distribution function, and their inverses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yota.tracing.functions.scipy.special import scipy_special

__all__ = ["Family", "special"]

_Form = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Family:
    """A distribution with location 0 and scale 1; each function takes the variable, then the shapes.

    Parameters
    ----------
    logpdf
        Logarithm of the density, or of the probability.
    cdf
        Distribution function; None where it is a sum without a closed form.
    sf
        Its complement, without cancellation.
    logcdf, logsf
        Logarithms of both; by default taken of them.
    ppf, isf
        The inverses of ``cdf`` and ``sf``; the first variable is then a probability.
    low, high
        Ends of the support; ``high`` may depend on the shapes.
    open
        Whether the lower end is no part of the support.
    allowed
        Whether the shapes are; None for all that are positive.
    """

    logpdf: _Form
    cdf: _Form | None = None
    sf: _Form | None = None
    logcdf: _Form | None = None
    logsf: _Form | None = None
    ppf: _Form | None = None
    isf: _Form | None = None
    low: float = -math.inf
    high: Callable[..., Any] | float = math.inf
    open: bool = False
    allowed: _Form | None = None


def special(name: str) -> Any:
    """A function of scipy.special."""
    return getattr(scipy_special(), name)
