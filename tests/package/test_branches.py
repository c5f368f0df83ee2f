"""Branches on sizes: code for all sizes is right at each of them, or refused with the line."""

from __future__ import annotations

import bisect
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.generated import loaded
from yota import errors
from yota.tracing.traced_sizes import Decision
from yota.transform.sizes.size_branches import Branches

LIMIT = 100
TABLE = {100: 3.0}


class Settings:
    def __init__(self) -> None:
        self.limit, self.edges, self.table = 100, (50, 100), {100: 4.0}


SETTINGS = Settings()


def closure() -> Callable[..., Any]:
    limit = 100

    def from_closure(x):
        return np.sum(x) * (2.0 if len(x) < limit else 1.0)

    return from_closure


def escaped() -> Callable[..., Any]:
    limit = 100

    def from_another_array(x):
        return np.sum(x) * (2.0 if np.ones(len(x), int).shape[0] > limit else 1.0)

    return from_another_array


def matched(x):
    match len(x):
        case 100:
            return np.sum(x**2)
        case _:
            return np.sum(x)


def stepped(x):
    scale = 1.0
    for _ in range(0, len(x), 100):
        scale = 2 * scale
    return scale * np.sum(x)


def looped(x):
    scale = 1.0
    for i in range(len(x)):
        if i == 100:
            scale = 2.0
    return scale * np.sum(x)


def reduced(x):
    count, scale = len(x), 1.0
    while count > 100:
        count, scale = count - 100, 2 * scale
    return scale * np.sum(x)


def combined(x):
    fifth, seventh = len(x) % 5 == 0, len(x) % 7 == 0
    return np.sum(x) * (2.0 if fifth and seventh else 1.0)


@functools.lru_cache
def _weight(count):
    return 2.0 if count > 100 else 1.0


def cached(x):
    return np.sum(x) * _weight(len(x))


def limited(x):
    if len(x) > 100:
        raise ValueError("too many")
    return np.sum(x)


def at_least(x):
    if len(x) < 3:
        raise ValueError("too few")
    return np.sum(x)


def by_default(x, limit=100):
    return np.sum(x) * (2.0 if len(x) > limit else 1.0)


FORMS: dict[str, Callable[..., Any]] = {
    "closure": closure(),
    "an array of the same length": escaped(),
    "match": matched,
    "range with a step": stepped,
    "a number of the loop": looped,
    "while": reduced,
    "two remainders": combined,
    "functools.lru_cache": cached,
    "raise": limited,
    "raise at small sizes": at_least,
    "default": by_default,
    "in": lambda x: np.sum(x**2) if len(x) in (100, 200) else np.sum(x),
    "global": lambda x: np.sum(x) * (2.0 if len(x) > LIMIT else 1.0),
    "attribute": lambda x: np.sum(x) * (2.0 if len(x) > SETTINGS.limit else 1.0),
    "dict.get": lambda x: np.sum(x) * {100: 2.0}.get(len(x), 1.0),
    "global dict": lambda x: np.sum(x) * TABLE.get(len(x), 1.0),
    "dict of an object": lambda x: np.sum(x) * SETTINGS.table.get(x.size, 1.0),
    "parity": lambda x: np.sum(x**2) if x.shape[0] % 2 else np.sum(x),
    "remainder": lambda x: np.sum(x) * (x.shape[0] % 100),
    "quotient": lambda x: np.sum(x) * (1 + len(x) // 100),
    "np.size": lambda x: np.sum(x) * (2.0 if np.size(x) == 200 else 1.0),
    "shape": lambda x: np.sum(x) * (2.0 if x.shape == (100,) else 1.0),
    "nbytes": lambda x: np.sum(x) * (2.0 if x.nbytes > 800 else 1.0),
    "first elements": lambda x: np.sum(x[:20000]),
    "all but the last": lambda x: np.sum(x[:-3] ** 2),
    "every other": lambda x: np.sum(x[::2] ** 2),
    "from the 100th": lambda x: np.sum(x[100:] ** 2) + np.sum(x),
    "the last 100": lambda x: np.sum(x[-100:] ** 2),
    "min": lambda x: np.sum(x) * min(len(x), 100),
    "max": lambda x: np.sum(x) * max(len(x) - 100, 0),
    "abs": lambda x: np.sum(x) * abs(len(x) - 100),
    "np.minimum": lambda x: np.sum(x) * np.minimum(len(x), 100),
    "math.sqrt": lambda x: np.sum(x) * (2.0 if math.sqrt(len(x)) > 10 else 1.0),
    "int": lambda x: np.sum(x) * (1 + int(len(x) / 100)),
    "round": lambda x: np.sum(x) * (1 + round(len(x) / 300)),
    "a quotient of floats": lambda x: np.sum(x) * (2.0 if len(x) / 7 > 20 else 1.0),
    "str": lambda x: np.sum(x) * {"100": 2.0}.get(str(len(x)), 1.0),
    "bisect": lambda x: np.sum(x) * bisect.bisect(SETTINGS.edges, len(x)),
    "bits": lambda x: np.sum(x) * (1 + (len(x) & 64) + (len(x) >> 6)),
    "power": lambda x: np.sum(x) * (2.0 if len(x) ** 2 > 10000 else 1.0),
    "an item of a list": lambda x: np.sum(x) * [1.0, 2.0][len(x) > 100],
    "np.eye": lambda x: np.sum(np.eye(len(x), k=50) @ x) + np.sum(x),
    "np.roll": lambda x: np.sum(np.roll(x, 100) * x),
    "bit_length": lambda x: np.sum(x) * (2.0 if len(x).bit_length() == 10 else 1.0),
    "an unnamed number": lambda x: np.sum(np.outer(x, x)) * np.minimum(len(x), 5 * LIMIT),
    "the median": lambda x: np.median(x) ** 2,
    "positions": lambda x: np.sum(np.where(np.arange(len(x)) < 100, x, 2 * x)),
}
WORKING = {"all but the last": 3, "every other": 1, "raise at small sizes": 3, "the median": 1}
"""Those of which a module can be made, each with the smallest size that it takes."""
SIZES = (*range(1, 13), 31, 50, 99, 100, 101, 200, 20000, 20001)


@pytest.mark.parametrize("form", [form for form in FORMS if form not in WORKING])
def test_what_depends_on_a_size_is_refused_with_its_line(form: str) -> None:
    f = FORMS[form]
    line = f.__code__.co_firstlineno
    with pytest.raises(errors.ArgumentError) as fault:
        yota.generate(f, {"x": "float64[N]"}, name="f")
    found = re.match(rf"{f.__name__}, line (\d+): `.+`: ".replace("<", r"\<"), str(fault.value))
    assert found and line <= int(found[1]) < line + 9, fault.value


@pytest.mark.parametrize("form", WORKING)
def test_what_is_alike_at_all_sizes_is_right_at_each(form: str) -> None:
    f, least = FORMS[form], WORKING[form]
    module = loaded(str(yota.generate(f, {"x": "float64[N]"}, name="f")))
    for size in SIZES:
        x = np.cos(np.arange(size))
        if size < least:
            with pytest.raises(ValueError, match=f"sizes must be N >= {least}"):
                module.f_gradient(x)
        else:
            value, gradient = module.f_value_and_gradient(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            parts = np.array([f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(size)]) if size <= 50 else gradient
            np.testing.assert_allclose(gradient, parts, rtol=1e-12)


def test_what_is_alike_at_a_small_size_and_at_larger_ones_is_tried_at_a_larger_one() -> None:
    def at_powers_of_two(x):
        return x[4] * np.sum(x) * (2.0 if len(x) & (len(x) - 1) == 0 else 1.0)

    with pytest.raises(errors.ArgumentError, match=r"at_powers_of_two, line \d+: .* another constant is met"):
        yota.generate(at_powers_of_two, {"x": "float64[N]"})


def wide(x, is_large):
    return np.sum(np.outer(x, x) * np.exp(-((x[:, None] - x) ** 2))) * (2.0 if is_large else 1.0)


def neighbours(x, is_large):
    total = 0.0
    for i in range(1, len(x)):
        total += x[i] * x[i - 1]
    # No value tells the branches apart where the total is positive.
    return total + np.maximum(0.0, -total) if is_large else total


@pytest.mark.parametrize("f", [wide, neighbours])
@pytest.mark.parametrize("is_large", [lambda n: int(str(n)) > 600, lambda n: n.bit_length() > 9], ids=["text", "bits"])
def test_a_branch_at_a_large_size_is_found_whatever_its_value(f: Any, is_large: Any) -> None:
    with pytest.raises(errors.ArgumentError, match=r"line \d+: .* when N changes"):
        yota.generate(lambda x: f(x, is_large(len(x))), {"x": "float64[N]"})


def test_a_size_that_an_index_does_not_fit_is_named() -> None:
    with pytest.raises(errors.ArgumentError, match=r"line \d+: .*: at N = \d+ this raises IndexError"):
        yota.generate(lambda x: 2 * x[-8], {"x": "float64[N]"})


def test_decisions_on_two_sizes_are_tried_together() -> None:
    def at_one_pair(x, y):
        return (np.sum(x) + np.sum(y)) * (2.0 if len(x) == 300 and len(y) == 310 else 1.0)

    with pytest.raises(errors.ArgumentError, match="another constant is met when N, M changes"):
        yota.generate(at_one_pair, {"x": "float64[N]", "y": "float64[M]"})


def test_decisions_of_each_trip_of_a_long_loop_are_refused_at_once() -> None:
    branches = Branches(["N"])
    branches.add({"N": 700}, [Decision("eq", (("extent", 700), trip), trip == 699, None) for trip in range(700)])
    with pytest.raises(errors.ArgumentError, match="decisions on N combine in 700 ways, too many to try"):
        next(branches.untried())


@pytest.mark.parametrize(
    "is_large",
    [
        lambda n: np.searchsorted([500.5], n)[()] > 0,
        lambda n: np.clip(n, 0, 5 * LIMIT) == 5 * LIMIT,
        lambda n: np.maximum(n, 5 * LIMIT) > 5 * LIMIT,
        lambda n: len(f"{n}") > 3,
    ],
    ids=["searchsorted", "clip", "maximum", "digits"],
)
def test_a_size_that_escapes_is_tried_in_each_octave(is_large: Any) -> None:
    with pytest.raises(errors.ArgumentError, match=r"line \d+: .* when N changes"):
        yota.generate(lambda x: np.sum(x**2) * (2.0 if is_large(len(x)) else 1.0), {"x": "float64[N]"})
