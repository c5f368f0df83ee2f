"""Modules for any number of further axes, ``float64[B,...]``."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.generated import lint, loaded
from tests.package.test_c import built, built_extension
from tests.package.test_sizes_in_c import called
from yota.errors import ArgumentError
from yota.ir.specs import parse

RANDOM = np.random.default_rng(11)
SHAPES = ((3,), (1, 1), (2, 3), (4, 1, 2), (2, 3, 1, 2, 2))


def distance(x, y):
    return np.mean((x - np.tanh(y)) ** 2) + np.sum(x * x) / len(x)


def standardised(x):
    centred = x - x.mean(axis=0)
    return np.sum(np.exp(centred / np.sqrt(centred.size)))


def normalised(x):
    lengths = np.sqrt(np.sum(x**2, axis=tuple(range(1, x.ndim)), keepdims=True))
    return np.sum(np.sin(x / lengths))


def smoothness(x):
    return np.sum(np.diff(x, axis=0) ** 2) / x.size


def anything(x):
    return np.sum(np.log1p(x**2)) * 3


def waves(x):
    return np.sin(x)


CASES: list[tuple[Any, dict[str, str]]] = [
    (distance, {"x": "float64[B,...]", "y": "float64[B,...]"}),
    (standardised, {"x": "float64[B,...]"}),
    (normalised, {"x": "float64[B,...]"}),
    (smoothness, {"x": "float64[B,...]"}),
    (anything, {"x": "float64[...]"}),
]


@cache
def generated(f: Any) -> yota.export.Module:
    """The module of one of `CASES`."""
    return yota.generate(f, dict(CASES)[f])


@pytest.mark.parametrize("f, specs", CASES, ids=lambda part: getattr(part, "__name__", ""))
def test_one_module_for_all_ranks(f: Any, specs: Any) -> None:
    module = loaded(str(generated(f)))
    for shape in (*SHAPES, *([()] if f is anything else [])):
        given = [RANDOM.normal(size=shape)[()] for _ in specs]
        value, gradient = getattr(module, f"{f.__name__}_value_and_gradient")(*given)
        expected, g = yota.grad(f, *given)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for found, wanted in zip(gradient if isinstance(gradient, tuple) else (gradient,), g, strict=True):
            assert np.shape(found) == np.shape(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-13)


def test_matrices_for_all_ranks() -> None:
    module = loaded(str(yota.generate(anything, {"x": "float64[B,...]"}, with_=("jacobian", "hessian", "hvp"))))
    turning = loaded(str(yota.generate(waves, {"x": "float64[...]"}, with_="jacobian")))
    for shape in SHAPES[:4]:
        x, v = RANDOM.normal(size=shape), RANDOM.normal(size=shape)
        hessian = yota.hessian(anything)(x)
        np.testing.assert_allclose(module.anything_hessian(x), hessian, rtol=1e-9, atol=1e-12)
        product = np.tensordot(hessian, v, len(shape))
        np.testing.assert_allclose(module.anything_hvp(x, v), product, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(module.anything_jacobian(x), yota.grad(anything, x)[1][0], rtol=1e-10)
        np.testing.assert_allclose(turning.waves_jacobian(x), yota.jacobian(waves)(x), rtol=1e-12, atol=1e-14)
    assert turning.waves_jacobian(0.5) == pytest.approx(np.cos(0.5))


@needs_compiler
@pytest.mark.parametrize("f, specs", CASES[1:], ids=lambda part: getattr(part, "__name__", ""))
def test_in_c(f: Any, specs: Any, tmp_path: Path) -> None:
    module = yota.generate(f, specs, target="c")
    assert "`rest` is how many elements" in module.files[f"{f.__name__}.h"]
    library = built(module, tmp_path)
    for shape in (*SHAPES, *([()] if f is anything else [])):
        x = np.asarray(RANDOM.normal(size=shape))
        value, slope = np.zeros(()), np.full(shape, 7.0)
        sizes = (x.size,) if f is anything else (len(x), x.size // len(x))
        status = called(library, f"{f.__name__}_value_and_gradient", sizes, [x.reshape(-1)], [value, slope])
        if f is smoothness and len(x) == 1:
            assert status == -2
            continue
        assert status == 0
        expected, g = yota.grad(f, x[()])
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, g[0], rtol=1e-10, atol=1e-13)


def test_further_axes_are_the_same_in_all_arguments() -> None:
    module = loaded(str(yota.generate(distance, CASES[0][1])))
    message = r"y has shape \(2, 4\), not \(B, \.\.\.\) with B = 2, \.\.\. = \(3,\)"
    with pytest.raises(ValueError, match=message):
        module.distance(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"x has shape \(\), not \(B, \.\.\.\)"):
        module.distance(1.0, 1.0)


def test_value_and_grad_serves_all_ranks() -> None:
    runs = []

    def counted(x):
        runs.append(x.shape)
        return standardised(x)

    both = yota.value_and_grad(counted, args={"x": "float64[B,...]"})
    known = len(runs)
    for shape in SHAPES:
        x = RANDOM.normal(size=shape)
        value, gradient = both(x)
        expected, g = yota.grad(standardised, x)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, g[0], rtol=1e-10, atol=1e-13)
    assert len(runs) == known


def turned(x):
    return np.sum(np.swapaxes(x, 0, -1)[0] ** 2)


def by_rank(x):
    return np.sum(x**2) if x.ndim > 1 else np.sum(x)


def rows(x):
    return np.sum(np.sum(x, axis=1) ** 2)


@pytest.mark.parametrize(
    "f, options, message",
    [
        (turned, {}, r"in the place of `\.\.\.` the function does something else(?s:.*)Write the axes out"),
        (by_rank, {}, r"with 0 axes in the place of `\.\.\.` the function does something else"),
        (rows, {"target": "cuda"}, r"with 2 axes in the place of `\.\.\.` the function does something else"),
        (rows, {"target": "c"}, r"with 2 axes in the place of `\.\.\.` the function does something else"),
        (anything, {"self_test": True}, "self_test needs a known number of axes"),
    ],
)
def test_what_depends_on_the_rank_is_refused(f: Any, options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        yota.generate(f, {"x": "float64[B,...]"}, **options)


def mean_square(x, y):
    return np.mean((x - y) ** 2)


def weighted(x, w, c):
    return np.sum(np.tanh(x.T * w) ** 2) * np.sum(c)


@needs_compiler
def test_extensions_take_any_number_of_axes(tmp_path: Path) -> None:
    specs = {"x": "float64[B,...]", "w": "float64[B]", "c": "float64[...]"}
    contents = ("value", "gradient", "hessian", "hvp")
    yota.generate(weighted, specs, target="c", with_=contents, wrt="x", extension=True).write(tmp_path / "weighted.c")
    module = built_extension(tmp_path, "weighted")
    assert "double [B, ...]" in module.weighted.__doc__ and "rest" not in module.weighted.__doc__
    for further in ((), (5,), (3, 2), (2, 1, 3)):
        x, w, c = (np.asarray(RANDOM.normal(size=shape)) for shape in ((4, *further), (4,), further))
        v = np.asarray(RANDOM.normal(size=x.shape))
        along = w.reshape(4, *(1 for _ in further))
        t = np.tanh(x * along)
        value = np.sum(t**2) * np.sum(c)
        slope = 2 * t * (1 - t**2) * along * np.sum(c)
        curve = (2 * (1 - t**2) ** 2 - 4 * t**2 * (1 - t**2)) * along**2 * np.sum(c)
        np.testing.assert_allclose(module.weighted(x, w, c), value, rtol=1e-12)
        found = module.weighted_value_and_gradient(np.asfortranarray(x), w, c)
        for one, other in zip(found, (value, slope), strict=True):
            assert np.shape(one) == np.shape(other)
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
        product = module.weighted_hvp(x, w, c, v)
        assert product.shape == x.shape
        np.testing.assert_allclose(product, curve * v, rtol=1e-10, atol=1e-12)
        hessian = module.weighted_hessian(x, w, c)
        assert hessian.shape == x.shape * 2
        np.testing.assert_allclose(hessian.reshape(x.size, x.size), np.diag(curve.reshape(-1)), rtol=1e-10, atol=1e-12)
    for wrong in (
        (np.ones((4, 3)), np.ones(4), np.ones(2)),
        (np.ones((4, 3)), np.ones(4), np.ones((3, 1))),
        (np.ones(()), np.ones(4), np.ones(3)),
        (np.ones((4, 3), np.float32), np.ones(4), np.ones(3)),
        (np.ones((4, 3)), np.ones(5), np.ones(3)),
    ):
        with pytest.raises(TypeError, match="must be an array of dtype"):
            module.weighted(*wrong)
    assert module.weighted(np.ones((4, 0)), np.ones(4), np.ones(0)) == 0.0
    alone = tmp_path / "alone"
    alone.mkdir()
    yota.generate(
        mean_square, {"x": "float64[...]", "y": "float64[...]"}, target="c", with_=("value",), extension=True
    ).write(alone / "mean_square.c")
    x, y = RANDOM.normal(size=(2, 3, 2, 2))
    np.testing.assert_allclose(
        built_extension(alone, "mean_square").mean_square(x, y), np.mean((x - y) ** 2), rtol=1e-14
    )
    with pytest.raises(ValueError, match="more axes than"):
        module.weighted_hessian(np.ones((1,) * 40), np.ones(1), np.ones((1,) * 39))


def test_further_axes_stand_at_the_end() -> None:
    assert str(parse("float64[B,...]")) == "float64[B,...]"
    with pytest.raises(ArgumentError, match=r"further axes stand at the end(?s:.*)float64\[\.\.\.,B\]\n {12}\^"):
        parse("float64[...,B]")


def test_linters_have_nothing_to_say(tmp_path: Path) -> None:
    for f, _ in CASES[:3]:
        generated(f).write(tmp_path / f"{f.__name__}.py")
    lint(tmp_path)
