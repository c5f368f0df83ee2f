"""The gradient for all sizes comes from one reverse pass; central differences confirm it before it is an oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError
from yota.package import size_checks, size_recordings
from yota.package.size_checks import proved
from yota.package.size_recordings import Sized, sized
from yota.package.subject import call_of
from yota.tracing.replay import evaluate
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.generalise import at_size


def windows(x: Any) -> Any:
    return np.mean((x[1:] - x[:-1]) ** 3) + np.var(x)


def table(a: Any, b: Any) -> Any:
    return np.sum(np.tanh(a @ b) * np.arange(1.0, len(a) + 1)[:, None]) / a.size


def joined(a: Any, b: Any) -> Any:
    both = np.concatenate([a.ravel(), b])
    return np.sum(both * both[::-1] ** 2) / len(both)


def steps(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(len(b)):
        total = 0.5 * total + np.sin(a[i, 0]) * b[i]
    return total


def whitened(a: Any, b: Any) -> Any:
    return b @ np.linalg.solve(a @ a.T + 4.0 * np.eye(len(a)), b) + np.sum(np.cumprod(1.0 + 0.1 * b))


CASES = [
    (windows, {"x": "float64[N]"}, {"N": 9}),
    (table, {"a": "float64[N,M]", "b": "float64[M,2]"}, {"N": 4, "M": 7}),
    (joined, {"a": "float64[N,3]", "b": "float64[M]"}, {"N": 4, "M": 7}),
    (steps, {"a": "float64[N,2]", "b": "float64[N]"}, {"N": 9}),
    (whitened, {"a": "float64[N,M]", "b": "float64[N]"}, {"N": 5, "M": 8}),
]


def gradient_at(found: Sized, size: dict[str, int]) -> list[Any]:
    adjoints, varying = found.derived("gradient")
    tape = adjoints.tape
    leaves = [leaf.value for leaf in found.subjects[0].call.arguments(size)[1].leaves]
    given = [*leaves, *(evaluated(each.text, size) for each in varying)]
    inputs = {entry.variable: value for entry, value in zip(tape.inputs, given, strict=True)}
    return evaluate(at_size(tape, size), inputs)[1:]


@pytest.mark.parametrize(("f", "args", "size"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_the_gradient_for_all_sizes_is_that_of_differences(f: Any, args: dict[str, str], size: dict[str, int]) -> None:
    found = sized(call_of(f, args), None)
    leaves = [leaf.value for leaf in found.subjects[0].call.arguments(size)[1].leaves]
    for place, slope in enumerate(gradient_at(found, size)):
        expected = np.empty_like(leaves[place])
        for index in np.ndindex(expected.shape):
            ends = []
            for sign in (1, -1):
                moved = [leaf.copy() for leaf in leaves]
                moved[place][index] += sign * 1e-6
                ends.append(f(*moved))
            expected[index] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("f", "args", "size"), CASES[:3], ids=lambda each: getattr(each, "__name__", ""))
def test_one_recording_is_differentiated(
    f: Any, args: dict[str, str], size: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sized(call_of(f, args), None)
    gradient_at(found, size)
    assert [subject for subject in found.subjects[1:] if "adjoints" in vars(subject)] == []


def test_a_tape_that_is_not_the_recording_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    call = call_of(joined, CASES[2][1])
    monkeypatch.setattr(size_recordings, "is_case", lambda *_: False)
    found = sized(call, None)
    expected = gradient_at(found, {"N": 4, "M": 7})
    assert all("adjoints" in vars(subject) for subject in found.subjects)
    monkeypatch.undo()
    for one, other in zip(gradient_at(sized(call, None), {"N": 4, "M": 7}), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_gradient_that_differences_do_not_confirm_is_no_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sized(call_of(windows, CASES[0][1]), None)
    function, arguments = found.subjects[0].call.arguments({"N": 9})
    assert size_checks._confirmed(found, function, arguments, {"N": 9}) is not None
    slopes = size_checks.slopes_of
    monkeypatch.setattr(size_checks, "slopes_of", lambda *given: [each * (1 + 1e-3) for each in slopes(*given)])
    assert size_checks._confirmed(found, function, arguments, {"N": 9}) is None


@pytest.mark.parametrize(("old", "new"), [("np.square(v0)", "np.abs(v0)"), ("scale = N - 1", "scale = N")])
def test_a_module_with_a_wrong_number_is_refused(old: str, new: str) -> None:
    call = call_of(windows, CASES[0][1])
    text = str(yota.generate(windows, args=CASES[0][1]))
    assert old in text
    proved(text, "windows", call, None, ("value", "gradient"), sized(call, None))
    with pytest.raises(ArgumentError, match="is not what the code for all sizes gives"):
        proved(text.replace(old, new), "windows", call, None, ("value", "gradient"), sized(call, None))
