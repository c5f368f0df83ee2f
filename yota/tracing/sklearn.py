"""Losses, kernels and distances of scikit-learn, which it has in compiled code, by their formulas."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yota.tracing.forms import Trace, is_traced, np, original, overwrite, records
from yota.tracing.scipy.distribution_formulas import special

_LOSS = "sklearn._loss.loss"
_PAIRWISE = "sklearn.metrics.pairwise"


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of the target, the raw prediction and the parameters, with two derivatives by the prediction."""

    value: Callable[[Any, Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]
    curvature: Callable[[Any, Any, Any], Any]


def _one(y: Any, raw: Any, by: Any) -> Any:
    return np.ones(np.shape(raw))


def _huber(y: Any, raw: Any, by: Any) -> Any:
    size = np.abs(raw - y)
    return np.where(size <= by.delta, 0.5 * size * size, by.delta * (size - 0.5 * by.delta))


def _tweedie(y: Any, raw: Any, by: Any) -> Any:
    p = by.power
    if p == 0:
        return 0.5 * (np.exp(raw) - y) ** 2
    if p in (1, 2):
        return np.exp(raw) - y * raw if p == 1 else raw + y * np.exp(-raw)
    return np.exp((2 - p) * raw) / (2 - p) - y * np.exp((1 - p) * raw) / (1 - p)


def _identity_tweedie(y: Any, raw: Any, by: Any) -> Any:
    p = by.power
    if p == 0:
        return 0.5 * (raw - y) ** 2
    if p == 1:
        return special("xlogy")(y, y) - special("xlogy")(y, raw) + raw - y
    if p == 2:
        return np.log(raw / y) + y / raw - 1
    found = raw * raw ** (1 - p) / (2 - p) - y * raw ** (1 - p) / (1 - p)
    positive = y > 0
    power = np.where(positive, y, 1.0) ** (2 - p)
    return found + np.where(positive, power / ((1 - p) * (2 - p)), 0.0)


def _probabilities(raw: Any) -> Any:
    return special("softmax")(raw, 1)


def _classes(y: Any, raw: Any) -> Any:
    return np.equal(np.asarray(y).astype(int)[:, None], np.arange(raw.shape[1]))


_LOSSES: dict[str, Loss] = {
    "HalfSquaredError": Loss(lambda y, raw, by: 0.5 * (raw - y) ** 2, lambda y, raw, by: raw - y, _one),
    "AbsoluteError": Loss(lambda y, raw, by: np.abs(raw - y), lambda y, raw, by: np.where(raw > y, 1.0, -1.0), _one),
    "PinballLoss": Loss(
        lambda y, raw, by: np.where(y >= raw, by.quantile * (y - raw), (1 - by.quantile) * (raw - y)),
        lambda y, raw, by: np.where(y >= raw, -by.quantile, 1 - by.quantile),
        _one,
    ),
    "HuberLoss": Loss(
        _huber,
        lambda y, raw, by: np.clip(raw - y, -by.delta, by.delta),
        lambda y, raw, by: np.where(np.abs(raw - y) <= by.delta, 1.0, 0.0),
    ),
    "HalfPoissonLoss": Loss(
        lambda y, raw, by: np.exp(raw) - y * raw,
        lambda y, raw, by: np.exp(raw) - y,
        lambda y, raw, by: np.exp(raw),
    ),
    "HalfGammaLoss": Loss(
        lambda y, raw, by: raw + y * np.exp(-raw),
        lambda y, raw, by: 1 - y * np.exp(-raw),
        lambda y, raw, by: y * np.exp(-raw),
    ),
    "HalfTweedieLoss": Loss(
        _tweedie,
        lambda y, raw, by: np.exp((2 - by.power) * raw) - y * np.exp((1 - by.power) * raw),
        lambda y, raw, by: (
            (2 - by.power) * np.exp((2 - by.power) * raw) - (1 - by.power) * y * np.exp((1 - by.power) * raw)
        ),
    ),
    "HalfTweedieLossIdentity": Loss(
        _identity_tweedie,
        lambda y, raw, by: raw ** (-by.power) * (raw - y),
        lambda y, raw, by: raw ** (-by.power) * ((1 - by.power) + by.power * y / raw),
    ),
    "HalfBinomialLoss": Loss(
        lambda y, raw, by: np.logaddexp(0.0, raw) - y * raw,
        lambda y, raw, by: special("expit")(raw) - y,
        lambda y, raw, by: special("expit")(raw) * special("expit")(-raw),
    ),
    "HalfMultinomialLoss": Loss(
        lambda y, raw, by: special("logsumexp")(raw, axis=1) - np.sum(np.where(_classes(y, raw), raw, 0.0), axis=1),
        lambda y, raw, by: _probabilities(raw) - _classes(y, raw),
        lambda y, raw, by: _probabilities(raw) * (1 - _probabilities(raw)),
    ),
    "ExponentialLoss": Loss(
        lambda y, raw, by: y * np.exp(-raw) + (1 - y) * np.exp(raw),
        lambda y, raw, by: (1 - y) * np.exp(raw) - y * np.exp(-raw),
        lambda y, raw, by: (1 - y) * np.exp(raw) + y * np.exp(-raw),
    ),
}
"""By the names of scikit-learn's classes."""


_METHODS = {
    "BaseLoss.loss": ("value",),
    "BaseLoss.gradient": ("slope",),
    "BaseLoss.loss_gradient": ("value", "slope"),
    "BaseLoss.gradient_hessian": ("slope", "curvature"),
    "HalfMultinomialLoss.gradient_proba": ("slope", "proba"),
}
"""The parts of a loss that methods give for each sample."""


@records(_LOSS, *_METHODS, named=True)
def _parts(
    name: str,
    trace: Trace,
    self: Any,
    y_true: Any,
    raw_prediction: Any,
    sample_weight: Any = None,
    *outs: Any,
    **named: Any,
) -> Any:
    named.pop("n_threads", None)
    parts, y, raw = _METHODS[name], trace.traced(y_true), trace.traced(raw_prediction)
    raw = np.squeeze(raw, 1) if raw.ndim == 2 and raw.shape[1] == 1 else raw
    known = next((each.__name__ for each in type(self).__mro__ if each.__name__ in _LOSSES), None)
    if known is None:
        raise trace.unrecorded(f"the loss {type(self).__name__} of scikit-learn", "")
    given = [*outs[: len(parts)], *named.values()]
    found = []
    for place, part in enumerate(parts):
        value = _probabilities(raw) if part == "proba" else getattr(_LOSSES[known], part)(y, raw, self.closs)
        if sample_weight is not None and part != "proba":
            weights = trace.traced(sample_weight)
            value = value * (weights if value.ndim == 1 else weights[:, None])
        found.append(_put(trace, given[place] if place < len(given) else None, value))
    return found[0] if len(found) == 1 else tuple(found)


def _put(trace: Trace, out: Any, value: Any) -> Any:
    if out is None:
        return value
    if not is_traced(out):
        raise trace.refuse("a result would be written into a plain array.", "Make the array inside the function.")
    overwrite(out, np.reshape(value, out.shape))
    return out


@records("sklearn.metrics._pairwise_fast", "_chi2_kernel_fast")
def _chi2(trace: Trace, X: Any, Y: Any, result: Any) -> None:
    x, y = trace.traced(X)[:, None, :], trace.traced(Y)[None, :, :]
    size = x + y
    terms = np.where(size == 0, 0.0, (x - y) ** 2 / np.where(size == 0, 1.0, size))
    _put(trace, result, -np.sum(terms, axis=-1))


@records(_PAIRWISE, "haversine_distances")
def _haversine(trace: Trace, X: Any, Y: Any = None) -> Any:
    """Angles between points on a sphere, given by latitude and longitude."""
    x = trace.traced(X)[:, None, :]
    y = trace.traced(X if Y is None else Y)[None, :, :]
    if x.shape[-1] != 2 or y.shape[-1] != 2:
        raise ValueError("Haversine distance only valid in 2 dimensions")
    half = np.sin(0.5 * (x - y)) ** 2
    square = half[..., 0] + np.cos(x[..., 0]) * np.cos(y[..., 0]) * half[..., 1]
    return _of_apart(square, lambda square: 2 * np.arcsin(np.sqrt(square)))


def _of_apart(squares: Any, distance: Any) -> Any:
    """Distances by their squares; of points that coincide the slope is that of a norm."""
    same = squares == 0
    return np.where(same, 0.0, distance(np.where(same, 1.0, squares))).astype(squares.dtype, copy=False)


@records(_PAIRWISE, "_euclidean_distances")
def _euclidean(
    trace: Trace, X: Any, Y: Any, X_norm_squared: Any = None, Y_norm_squared: Any = None, squared: bool = False
) -> Any:
    found = original(sys.modules[_PAIRWISE]._euclidean_distances)(X, Y, X_norm_squared, Y_norm_squared, squared=True)
    return found if squared else _of_apart(found, np.sqrt)


@records(_PAIRWISE, "pairwise_distances_argmin_min")
def _nearest(
    trace: Trace, X: Any, Y: Any, *, axis: int = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> Any:
    found = sys.modules[_PAIRWISE].pairwise_distances(X, Y, metric=metric, **(metric_kwargs or {}))
    return np.argmin(found, axis=axis), np.min(found, axis=axis)
