"""Calls of a kind that was recorded before: their tapes are those of first calls, views and orders in memory too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.tracing import repeated_calls

_ROW = np.array([0.5, -1.0, 2.0, 3.0])
_MASK = np.array([True, False, True, False])


def _written(view: Any) -> Any:
    """A function that writes through a view, so that it matters whether that is one."""

    def written(x: Any) -> Any:
        whole = x * 1.0
        part = view(whole)
        part[...] = 7.0 * part
        return whole + np.sum(part)

    return written


CALLS = {
    "axis": lambda x: np.sum(x, axis=0) + np.sum(x, 0) + x.sum(axis=(0, 1)),
    "truths": lambda x: np.sum(x, axis=0, keepdims=True) + np.sum(x, axis=0, keepdims=1),
    "dtype": lambda x: np.sum(x, dtype=np.float32) + np.sum(x, dtype=np.float64) + np.sum(x > 0, axis=0),
    "extrema": lambda x: np.max(x, axis=1) - np.min(x, axis=1) + np.prod(x, axis=1),
    "where": lambda x: np.where(_MASK, x, 0.0) + np.where(x > 0, x, x) + np.where(_MASK, x, -0.0),
    "numbers": lambda x: np.where(x > 1, 2, x) + np.where(x > 1, 2.0, x) + np.where(x > 1, np.float32(2), x),
    "products": lambda x: x @ _ROW + np.dot(x, _ROW) + np.dot(_ROW, x.T) + np.matmul(x, _ROW)[0],
    "joined": lambda x: np.concatenate([x, x[::-1]]) + np.concatenate((x[1:], x[:1], x)),
    "stacked": lambda x: np.stack([x, x], 1) + np.stack([x, 2 * x], axis=1),
    "listed": lambda x: (
        np.array([x[0, 0], 2, x[1, 1]]) + np.array([x[0, 0], 2.0, x[1, 1]]) + np.array((x[0], x[1]))[:, 1:]
    ),
    "written": lambda x: _written(lambda y: y)(np.array([x[0, 0], x[0, 1]])) + np.array([x[0], x[1]]).T.reshape(4, 2),
    "shapes": lambda x: np.reshape(x, (4, 3)) @ x.reshape(3, -1) + x.T @ x,
    "order": lambda x: np.reshape(x, (4, 3), order="A") + np.reshape(x.T, (4, 3), order="A") + x.reshape(4, 3),
    "slices": lambda x: x[:, 1:][:2, None, ::-1] + x[..., :-1][1, None, :] + x[np.newaxis, :2, :3] * x[:2, 1:],
    "elements": lambda x: x[1, ...] + x[1] + x[0, 1] + x[..., 0][2],
    "empty": lambda x: x[:, 4:].sum() + x[:0].sum() + np.sum(x),
    "write slice": _written(lambda x: x[:, 1:3]),
    "write transpose": _written(lambda x: x.T[1:]),
    "write row": _written(lambda x: x[:, None, :][2]),
    "write reshape": _written(lambda x: x.reshape(-1)[2:5]),
    "write copy": _written(lambda x: x.T.reshape(-1)),
    "write broadcast": lambda x: _written(lambda y: y[1:])(np.broadcast_to(x, (2, 3, 4)) * 1.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_known_kinds_record_what_first_calls_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call = CALLS[name]
    known: dict[Any, Any] = {}
    monkeypatch.setattr(repeated_calls, "_known", known)
    for lay in 2 * (np.ascontiguousarray, np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2]):
        x = lay(np.linspace(-1.0, 2.0, 12).reshape(3, 4))
        value, again = yota.trace(call, x)
        with monkeypatch.context() as patch:
            patch.setattr("yota.tracing.tracer.BY_KIND", {})
            wanted, tape = yota.trace(call, x)
        assert str(again) == str(tape)
        assert np.array_equal(value, wanted, equal_nan=True)
        assert np.array_equal(np.signbit(value), np.signbit(wanted))
        assert np.asarray(value).strides == np.asarray(wanted).strides
        plain: Any = call(x)
        np.testing.assert_array_max_ulp(value, plain, 2)
    assert known


def test_the_kinds_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_calls, "_known", {})
    monkeypatch.setattr(repeated_calls, "_MOST", 4)
    yota.trace(lambda x: sum([np.sum(x[:stop]) for stop in range(2, 20)]), np.ones(20))
    assert len(repeated_calls._known) <= 4
