"""Functions of SciPy and of Python that do not dispatch: recorded as the NumPy functions they amount to."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.rules.statics import axes_of
from yota.tracing.exact import record_call
from yota.tracing.functions.scipy import distributions
from yota.tracing.functions.scipy.filters import FILTERS
from yota.tracing.functions.scipy.matrices import MATRICES
from yota.tracing.functions.scipy.special import SPECIAL
from yota.tracing.functions.scipy.transforms import TRANSFORMS
from yota.tracing.functions.statistics import STATISTICS
from yota.tracing.methods import collected, is_traced
from yota.tracing.state import current

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["replacements"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy


def _logsumexp(
    trace: Trace, a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Log of a weighted sum of exponentials, shifted by the largest exponent.

    Blanchard, Higham and Higham, Accurately Computing the Log-Sum-Exp and Softmax Functions, IMA Journal of Numerical
    Analysis 41 (2021), section 1.
    """
    a = trace.traced(a)
    shift = _finite_maximum(a, axis)
    terms = np.exp(a - shift) if b is None else b * np.exp(a - shift)
    total = np.sum(terms, axis=axis, keepdims=keepdims)
    level = shift if keepdims else np.squeeze(shift, axis=axes_of(axis, a.ndim))
    if return_sign:
        return np.log(np.abs(total)) + level, np.sign(total)
    return np.log(total) + level


def _finite_maximum(a: Any, axis: Any) -> Any:
    """The largest element, 0 where that is infinite or NaN; a shift, through which no derivative flows."""
    largest = np.max(a, axis=axis, keepdims=True)
    return np.where(np.isfinite(largest), largest, 0.0)


def _softmax(trace: Trace, x: Any, axis: Any = None) -> Any:
    x = trace.traced(x)
    powers = np.exp(x - _finite_maximum(x, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(trace: Trace, x: Any, axis: Any = None) -> Any:
    x = trace.traced(x)
    shifted = x - _finite_maximum(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


_FORMS: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.special", "logsumexp"): _logsumexp,
    ("scipy.special", "softmax"): _softmax,
    ("scipy.special", "log_softmax"): _log_softmax,
    **FILTERS,
    **MATRICES,
    **SPECIAL,
    **STATISTICS,
    **TRANSFORMS,
}


def replacements() -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording function)`` for those of the functions whose modules are loaded."""
    return distributions.replacements() + [
        (sys.modules[module], name, _recording(module, name))
        for module, name in _FORMS
        if module in sys.modules and hasattr(sys.modules[module], name)
    ]


@functools.cache
def _recording(module: str, name: str) -> Any:
    original, form = getattr(sys.modules[module], name), _FORMS[module, name]

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is not None and module == "statistics":
            args = tuple(map(collected, args))
        if trace is None or not (any(map(is_traced, args)) or any(map(is_traced, keywords.values()))):
            return original(*args, **keywords)
        if trace.exact:
            found = record_call(trace, original, args, keywords, f"{module}.{name}")
            if found is not NotImplemented:
                return found
        return form(trace, *args, **keywords)

    call.recorded_from = original  # type: ignore[attr-defined]
    return call
