"""What all derivatives say about themselves, and the log of compilations."""

from __future__ import annotations

import datetime as dt
import itertools
import logging
import pydoc

import numpy as np
import pytest

import yota
from yota.run.machine import native

X = np.array([0.3, 0.7, 1.1])
M = np.eye(3) + 0.1
TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]


def loss(x, scale=2.0):
    return np.sum(scale * np.sin(x) ** 2)


MADE = {
    "value_and_grad": (lambda f, target: yota.value_and_grad(f, target=target), (X,)),
    "gradient": (lambda f, target: yota.gradient(f, target=target), (X,)),
    "jacobian": (lambda f, target: yota.jacobian(f, target=target), (X,)),
    "jacobian by rows": (lambda f, target: yota.jacobian(lambda x: np.linalg.inv(x) * f(x[0]), target=target), (M,)),
    "jacobian by structures": (lambda f, target: yota.jacobian(lambda p: {"y": f(p["x"])}, target=target), ({"x": X},)),
    "hessian": (lambda f, target: yota.hessian(f, target=target), (X,)),
    "hessian by several": (lambda f, target: yota.hessian(f, (0, 1), with_value=True, target=target), (X, 2.0)),
    "hvp": (lambda f, target: yota.hvp(f, target=target), (X, X)),
    "batch": (lambda f, target: yota.batch(f, target=target), (np.stack([X, X]),)),
}
COUNT = itertools.count(1.0)


def fresh():
    """A function of which nothing is compiled yet: what functions of the same code share, it does not."""
    own = next(COUNT)

    def loss(x, scale=2.0):
        return np.sum(scale * np.sin(x) ** 2) * own

    return loss


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MADE)
def test_a_derivative_says_what_it_is(name, target, caplog):
    make, args = MADE[name]
    derivative = make(fresh(), target)
    made = name.split()[0]
    assert repr(derivative).startswith(f"<yota.{made} of ") and repr(derivative).endswith(
        f"target {target}, 0 compiled>"
    )
    assert derivative.source == "" and derivative.tape is None and derivative.info().compilations == ()
    with caplog.at_level(logging.INFO, "yota"):
        first = derivative(*args)
    records = [each.getMessage() for each in caplog.records]
    told = derivative.info().compilations
    assert sorted(f"compiled {each}" for each in told) == sorted(records)
    assert len(told) >= 1 and all(each.seconds > 0 and each.target == target for each in told)
    assert f"{len(told)} compiled" in repr(derivative)
    assert "def " in derivative.source or "static" in derivative.source
    assert isinstance(derivative.tape, yota.Tape)
    derivative(*args)
    assert derivative.info().compilations == told
    derivative.clear()
    assert repr(derivative).endswith("0 compiled>") and derivative.source == ""
    again = derivative(*args)
    np.testing.assert_equal(again, first)
    assert "compiled>" in repr(derivative) and " 0 compiled" not in repr(derivative)
    assert str(derivative.info()).startswith(repr(derivative)[6:-1])


def test_derivatives_that_share_their_code_have_names_of_their_own():
    f = fresh()
    fg, g = yota.value_and_grad(f), yota.gradient(f)
    fg(X)
    assert repr(fg) == "<yota.value_and_grad of loss, target numpy, 1 compiled>"
    assert repr(g) == "<yota.gradient of loss, target numpy, 1 compiled>" and g.source == fg.source
    assert repr(yota.batch(g)) == "<yota.batch of gradient of loss, target numpy, 0 compiled>"
    products = yota.hvp(f)
    products(X, 3.0, X)
    assert products.info().compilations[0].arguments == f"x: float64[{X.size}], scale: float, v: float64[{X.size}]"


@pytest.mark.parametrize("target", TARGETS)
def test_calls_are_counted_and_dated(target):
    began = dt.datetime.now().astimezone()
    fg = yota.value_and_grad(fresh(), target=target)
    for _ in range(5):
        fg(X)
    fg(x=X)
    information = fg.info()
    assert information.calls == 6 and ", 6 calls" in str(information)
    assert began <= information.compilations[0].when <= dt.datetime.now().astimezone()


@pytest.mark.parametrize("target", TARGETS)
def test_help_shows_the_signature_of_the_function(target):
    shown = pydoc.plain(pydoc.render_doc(yota.value_and_grad(loss, target=target)))
    assert "loss(x, scale=2.0)" in shown and "The value and gradient of loss." in shown


def test_kinds_of_arguments_and_reasons_are_told():
    shift = 1.0

    def shifted(x, n, params):
        return np.sum(x**n) * params["a"][0] + shift if np.sum(x) > 0 else -np.sum(x)

    fg = yota.value_and_grad(shifted, dynamic=True)
    fg(X, 2, {"a": [3.0]})
    fg(-X, 2, {"a": [3.0]})
    shift = 2.0
    value, _ = fg(X, 2, {"a": [3.0]})
    assert value == shifted(X, 2, {"a": [3.0]})
    fg.clear()
    fg(X, 2, {"a": [3.0]})
    first, branch, changed, cleared = fg.info().compilations
    assert {each.arguments for each in fg.info().compilations} == {"x: float64[3], n=2, params.a[0]: float"}
    assert first.why == "first call with such arguments"
    assert branch.why.endswith("a branch went another way") and "test_compiled.py" in branch.why
    assert changed.why == "what the function reads from outside has changed"
    assert cleared.why == "clear() was called"


def test_content_that_the_code_relies_on_is_told():
    places = np.array([0, 2])
    held = {"at": places}
    fg = yota.gradient(lambda x: np.sum(x[[int(each) for each in held["at"]]]))
    fg(X)
    places[0] = 1
    np.testing.assert_array_equal(fg(X), [0.0, 1.0, 1.0])
    assert fg.info().compilations[-1].why == "the content of an array that the code relies on has changed"


def test_code_for_all_sizes_and_for_one_kind():
    fg = yota.value_and_grad(loss, args={"x": "float64[N]"})
    assert "1 compiled" in repr(fg) and "def loss" in fg.source
    fg.clear()
    assert "0 compiled" in repr(fg)
    np.testing.assert_allclose(fg(X)[1], 2 * np.sin(2 * X))
    assert "1 compiled" in repr(fg) and fg.info().compilations[-1].why == "clear() was called"
    simple = yota.simplegrad(loss, X)
    assert repr(simple) == "<yota.simplegrad of loss, target numpy, 1 compiled>" and simple.source and simple.tape
    with pytest.raises(yota.errors.ArgumentError, match="compiled only once"):
        simple.clear()


def test_a_pullback_tells_of_its_code():
    _, pullback = yota.vjp(np.sin, X)
    pullback(X)
    assert repr(pullback) == "<yota.pullback, target numpy, 1 compiled>" and "cos" in pullback.source


def test_a_compilation_that_fails_is_none():
    fg = yota.value_and_grad(lambda x: "text")
    with pytest.raises(yota.errors.TracingError):
        fg(X)
    assert fg.info().compilations == ()


def test_three_shapes_are_told_the_specs_that_serve_them_all() -> None:
    def weighted(x, y, scale):
        return scale * np.sum(x * y[:, None])

    both = yota.value_and_grad(weighted)
    for rows in (2, 3, 5):
        assert both.info().specs == {}
        both(np.ones((rows, 4)), np.ones(rows), 2.0)
    specs = {"x": "float64[N,4]", "y": "float64[N]", "scale": "float"}
    assert both.info().specs == specs
    assert str(both.info()).endswith(f"one compilation serves all of these sizes with args={specs!r}")
    assert yota.value_and_grad(weighted, args=specs)(np.ones((7, 4)), np.ones(7), 2.0)[0] == 56.0
