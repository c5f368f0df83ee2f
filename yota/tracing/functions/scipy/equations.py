"""Systems of linear equations of scipy.linalg, by what is assumed of their matrices."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.functions.linalg import hermitian
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_KINDS = {
    "general": "gen",
    "symmetric": "sym",
    "hermitian": "her",
    "positive definite": "pos",
    "lower triangular": "lower",
    "upper triangular": "upper",
}


def stacked(form: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """``form`` of matrices, for each of those that stacks of them hold."""
    lead = np.broadcast_shapes(*(each.shape[:-2] for each in arrays))
    if not lead:
        return form(*arrays)
    whole = [np.broadcast_to(each, lead + each.shape[-2:]) for each in arrays]
    found = [form(*(each[place] for each in whole)) for place in itertools.product(*map(range, lead))]
    if not isinstance(found[0], tuple):
        return _joined(found, lead)
    parts = [_joined(each, lead) for each in zip(*found, strict=True)]
    kind: Any = type(found[0])
    return kind(*parts) if hasattr(kind, "_fields") else tuple(parts)


def _joined(found: Sequence[Any], lead: tuple[int, ...]) -> Any:
    whole = np.stack(found)
    return np.reshape(whole, lead + whole.shape[1:])


def of_each(form: Callable[..., Any]) -> Callable[..., Any]:
    """``form`` of one matrix, for each of those that a stack of them holds too."""

    @functools.wraps(form)
    def call(trace: Trace, a: Any, **keywords: Any) -> Any:
        a = trace.traced(a)
        return stacked(lambda each: form(trace, each, **keywords), (a,)) if a.ndim > 2 else form(trace, a, **keywords)

    return call


@records("scipy.linalg", "solve")
def _solve(trace: Trace, a: Any, b: Any, lower: bool, assume_a: str | None, transposed: bool) -> Any:
    a, b = _assumed(trace, "solve", trace.traced(a), assume_a, lower), trace.traced(b)
    return np.linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)


@records("scipy.linalg", "inv")
def _inv(trace: Trace, a: Any, assume_a: str | None = None, lower: bool = False) -> Any:
    return np.linalg.inv(_assumed(trace, "inv", trace.traced(a), assume_a, lower))


def _assumed(trace: Trace, name: str, a: Any, kind: str | None, lower: bool) -> Any:
    """``a`` as it is read under an assumption: of a symmetric matrix one triangle."""
    kind = _KINDS.get(kind or "gen", kind)
    if kind in (None, "gen"):
        return a
    if kind in ("lower", "upper"):
        return (np.tril if kind == "lower" else np.triu)(a)
    if kind in ("her", "pos") or (kind == "sym" and a.dtype.kind != "c"):
        return hermitian(trace, a, lower)
    if kind == "diagonal":
        return np.triu(np.tril(a))
    if kind == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    raise trace.unrecorded(f"scipy.linalg.{name} with assume_a={kind!r}", "Leave it out.")


@records("scipy.linalg", "lstsq")
def _lstsq(trace: Trace, a: Any, b: Any, cond: Any, lapack_driver: Any) -> Any:
    a, b = trace.traced(a), trace.traced(b)
    if a.ndim != 2 or lapack_driver == "gelsy":
        raise trace.unrecorded("scipy.linalg.lstsq of stacked matrices or by gelsy", "Write a loop.")
    cutoff = float(np.finfo(np.result_type(a.dtype, np.float32)).eps) if cond is None else float(cond)
    found, residuals, rank, singular = np.linalg.lstsq(a, b, cutoff)
    full = residuals.size and b.ndim == 1
    return found, residuals[0] if full else residuals, rank, singular


@records("scipy.linalg", "solve_continuous_lyapunov", "solve_lyapunov")
def _continuous_lyapunov(trace: Trace, a: Any, q: Any) -> Any:
    a = trace.traced(a)
    return trace.apply(trace.registry.primitive("solve_sylvester"), (a, np.conjugate(a.T), q))
