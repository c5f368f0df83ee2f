"""Words of other libraries are answered with those of yota."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError

X = np.array([0.3, 0.7])


def loss(x, scale=1.0):
    return scale * np.sum(x**2)


MAKERS = ["value_and_grad", "gradient", "jacobian", "hessian", "hvp", "batch"]


OPTIONS = {
    "argnums": "wrt=",
    "argnum": "wrt=",
    "holomorphic": "leave it out",
    "allow_int": r"astype\(float\)",
    "create_graph": "leave it out",
    "retain_graph": "leave it out",
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("option", "word"), OPTIONS.items())
def test_options_of_makers(name, option, word):
    with pytest.raises(ArgumentError, match=rf"yota\.{name} has no {option}=; .*{word}"):
        getattr(yota, name)(loss, **{option: 0})


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "batch"])
def test_axes_are_those_of_batch(name):
    with pytest.raises(ArgumentError, match=r"has no in_axes=; it is an option of yota\.batch"):
        getattr(yota, name)(loss, in_axes=0)


def test_options_of_functions_that_evaluate():
    with pytest.raises(ArgumentError, match="has no argnums=; say wrt="):
        yota.grad(loss, X, argnums=0)
    with pytest.raises(ArgumentError, match="has no create_graph=; leave it out"):
        yota.vjp(loss, X, create_graph=True)
    with pytest.raises(ArgumentError, match="has no holomorphic=; leave it out"):
        yota.jvp(loss, (X,), (X,), holomorphic=True)
    with pytest.raises(ArgumentError, match="has no argnums=; say wrt="):
        yota.simplegrad(loss, X, argnums=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        yota.grad(loss, X, nonsense=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        yota.gradient(loss, nonsense=0)


def test_options_of_that_name_that_the_function_has_are_its_own():
    def chosen(x, argnums):
        return np.sum(x**argnums)

    np.testing.assert_allclose(yota.grad(chosen, X, argnums=3)[1][0], 3 * X**2)
    np.testing.assert_allclose(yota.gradient(chosen)(X, argnums=3), 3 * X**2)


def test_functions_that_evaluate_say_which_ones_do_not():
    with pytest.raises(
        ArgumentError, match=r"argument 'x' is missing: yota\.grad\(f, x\)\. .*yota\.gradient\(f\)\(x\)"
    ):
        yota.grad(loss)(X)
    with pytest.raises(ArgumentError, match=r"yota\.vjp\(f, x\)\. .*yota\.gradient\(f\)\(x\)"):
        yota.vjp(loss)(X)
    with pytest.raises(ArgumentError, match=r"yota\.simplegrad\(f, x\)\. .*yota\.value_and_grad\(f\)\(x\)"):
        yota.simplegrad(loss)(X)
    for point in (X, 2.0):
        with pytest.raises(ArgumentError, match=r"call what is made: yota\.gradient\(f\)\(x\)"):
            yota.gradient(loss, point)


def test_signatures_are_those_of_the_functions():
    assert list(inspect.signature(yota.gradient).parameters)[:2] == ["f", "wrt"]
    assert yota.gradient.__module__ == "yota.api.gradients" and yota.gradient.__name__ == "gradient"
