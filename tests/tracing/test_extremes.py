"""Python's `min` and `max` of traced numbers: selected, not decided, with Python's result and class."""

import math

import numpy as np
import pytest

import yota

NUMBERS = [
    (0.3, 0.7, 0.5),
    (0.7, 0.3, 0.5),
    (0.5, 0.5, 0.7),
    (math.nan, 0.3, 0.5),
    (0.3, math.nan, 0.5),
    (0.0, -0.0, 1.0),
]
FORMS = {
    "arguments": (lambda a, b, c: min(a, b, c), lambda a, b, c: max(a, b, c)),
    "a list": (lambda a, b, c: min([a, b, c]), lambda a, b, c: max((a, b, c))),
    "a generator": (lambda a, b, c: min(each for each in (a, b, c)), lambda a, b, c: max(each for each in (a, b, c))),
    "one within another": (lambda a, b, c: min(a, min(b, c)), lambda a, b, c: max(max(a, b), c)),
}


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("form", FORMS)
def test_one_tape_for_all_numbers(form, which, kind):
    """The first of equal numbers is taken, as Python takes it."""
    f = FORMS[form][which]
    fg = yota.value_and_grad(yota.interpreted(f), wrt=(0, 1, 2))
    counts = set()
    for numbers in NUMBERS:
        given = [kind(each) for each in numbers]
        value, slopes = fg(*given)
        wanted = f(*given)
        np.testing.assert_array_equal(value, wanted)
        assert type(value) is type(wanted)
        taken = next(place for place, each in enumerate(given) if each is wanted)
        assert list(slopes) == [place == taken for place in range(3)]
        counts.add(len(fg.info().compilations))
    assert len(counts) == 1
    assert not fg.tape.guards


def test_elements_of_arrays_and_the_distance_of_sequences():
    def warped(x, y):
        costs = np.full((len(x) + 1, len(y) + 1), np.inf)
        costs[0, 0] = 0.0
        for i in range(1, len(x) + 1):
            for j in range(1, len(y) + 1):
                costs[i, j] = (x[i - 1] - y[j - 1]) ** 2 + min(costs[i - 1, j], costs[i, j - 1], costs[i - 1, j - 1])
        return costs[-1, -1]

    fg = yota.value_and_grad(yota.interpreted(warped))
    for seed in range(3):
        draw = np.random.default_rng(seed)
        x, y, step = draw.normal(size=5), draw.normal(size=6), 1e-6 * draw.normal(size=5)
        value, g = fg(x, y)
        assert value == pytest.approx(warped(x, y), rel=1e-14)
        assert g @ step == pytest.approx((warped(x + step, y) - warped(x - step, y)) / 2, rel=1e-6, abs=1e-12)
    assert len(fg.info().compilations) == 1


def test_what_python_decides():
    """Numbers of several classes, of which Python's raise where NumPy's do not; keys; what is no real number."""
    x = np.array([0.5, -2.0])
    assert yota.gradient(lambda x: x[0] / max(x[1], 1.0))(x).tolist() == [1.0, 0.0]
    assert type(yota.trace(lambda x: max(x[1], 0), x)[0]) is int
    assert yota.gradient(lambda x: max(x[0], x[1], key=abs) * x[0])(x).tolist() == [-2.0, 0.5]
    assert yota.gradient(lambda x: max([x[0], x[1]], default=1.0) * 2)(x).tolist() == [2.0, 0.0]
    with pytest.raises(TypeError):
        yota.gradient(lambda x: min(complex(x[0]), complex(x[1])).real)(x)
    assert yota.gradient(lambda x, pick=max: pick(x[0], x[1]) * (3.0 if pick is max else 1.0))(x).tolist() == [3.0, 0.0]
