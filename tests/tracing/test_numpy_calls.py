"""A thousand calls of NumPy with their keywords, traced: results have NumPy's values, shapes and dtypes.

`numpy.calls` has a paragraph of calls for each test. The arguments are of single precision and lie in memory in all
ways by turns.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import yota
from yota.tracing.replay import evaluate

PARAGRAPHS = Path(__file__).with_name("numpy.calls").read_text(encoding="utf-8").strip().split("\n\n")
RNG = np.random.default_rng(3)
MASK = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1]], bool)


def normal(*shape):
    return RNG.standard_normal(shape)


def holed(array, value, *places):
    for place in places:
        array[place] = value
    return array


def positive(array):
    return array @ array.T + 3 * np.eye(len(array))


ARGUMENTS = {
    "x": normal(3, 4),
    "y": normal(3, 4),
    "v": normal(4),
    "w": normal(4),
    "s": normal(3, 3) + 3 * np.eye(3),
    "p": positive(normal(3, 3)),
    "t": normal(2, 3, 4),
    "b": normal(2, 3, 3) + 3 * np.eye(3),
    "u": RNG.uniform(-0.9, 0.9, (3, 4)),
    "zz": normal(4) + 1j * normal(4),
    "zx": normal(3, 4) + 1j * normal(3, 4),
    "n": holed(normal(3, 4), np.nan, (0, 1), (2, 3)),
    "z0": holed(normal(3, 4), 0.0, (0, 1), (1, 1), (1, 2)),
    "q0": np.array([20.0, 55.0]),
    "ti": normal(6, 2, 3),
    "ti6": normal(2, 3, 2, 3),
    "ti7": np.moveaxis(normal(2, 3, 6), 2, 1),
    "v6": normal(2, 3),
}


def written(write):
    """A function of the array after ``write`` changed a copy of it."""

    def function(array, *rest, **keywords):
        array = array.copy()
        write(array, *rest, **keywords)
        return array

    return function


def at(ufunc, array, places, *values):
    array = array.copy()
    ufunc.at(array, places if len(places) > 1 else places[0], *values)
    return array


def copied(array, *mask):
    result = np.zeros((3, 4))
    np.copyto(result, array, **({"where": mask[0]} if mask else {}))
    return result


def rebuilt(array):
    u, s, vh = np.linalg.svd(array, full_matrices=False)
    return (u * np.exp(s)) @ vh


def padding(vector, width, axis, keywords):
    vector[: width[0]] = 7.0
    vector[len(vector) - width[1] :] = 8.0


SCOPE = {
    "np": np,
    "m": MASK,
    "at": at,
    "fill": written(np.fill_diagonal),
    "srt": written(lambda array, **keywords: array.sort(**keywords)),
    "pta": written(np.put_along_axis),
    "put": written(np.put),
    "pm": written(np.putmask),
    "place": written(np.place),
    "cpt": copied,
    "recon": rebuilt,
    "padfun": padding,
}


def laid(array, turn):
    """The array in one of five ways to lie in memory."""
    if turn == 1:
        return np.asfortranarray(array)
    if turn == 2:
        spread = np.zeros([2 * extent for extent in array.shape], array.dtype)[(slice(None, None, 2),) * array.ndim]
        spread[...] = array
        return spread
    if turn == 3:
        return np.flip(np.flip(array).copy())
    array = array.copy()
    array.flags.writeable = turn != 4
    return array


def calls(paragraph):
    """The calls of a paragraph, apart at semicolons."""
    return [each for each in re.split(r";\s*", paragraph) if each]


def single(array):
    return array.astype(np.complex64 if array.dtype.kind == "c" else np.float32)


def fault(call, turn):
    """What is wrong with the result of a traced call; None if nothing is."""
    code = compile(call, call, "eval")
    names = [name for name in ARGUMENTS if name in code.co_names or re.search(rf"\b{name}\b", call)]
    arguments = [laid(single(ARGUMENTS[name]), turn) for name in names]

    def function(*given):
        result = eval(code, {**SCOPE, **dict(zip(names, given, strict=True))})
        return result[0] if isinstance(result, (tuple, list)) else result

    try:
        wanted = np.asarray(function(*arguments))
    except TypeError:
        # A keyword that this version of NumPy does not know.
        assert np.lib.NumpyVersion(np.__version__) < "2.3.0"
        return None
    kept = [each.copy() for each in arguments]
    result, tape = yota.trace(function, *arguments)
    played = evaluate(tape, {entry.variable: each for entry, each in zip(tape.inputs, arguments, strict=True)})[0]
    if any(not np.array_equal(one, other, equal_nan=True) for one, other in zip(arguments, kept, strict=True)):
        return f"{call} writes its arguments"
    for found in (np.asarray(result), np.asarray(played)):
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            return f"{call} gives {found.dtype}{found.shape}, and by NumPy {wanted.dtype}{wanted.shape}"
        # The value while tracing is NumPy's; what the recorded ops give has to agree with it to the last digits.
        largest = np.max(abs(wanted), initial=0, where=np.isfinite(wanted)) if wanted.dtype.kind in "fc" else 0
        if not np.allclose(found, wanted, rtol=0, atol=4 * np.finfo(np.float32).eps * largest, equal_nan=True):
            return f"{call} gives {found}, and by NumPy {wanted}"
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(PARAGRAPHS)))
def test_calls(number):
    faults = [fault(call, turn % 5) for turn, call in enumerate(calls(PARAGRAPHS[number]), number)]
    assert not list(filter(None, faults))


def test_a_wrong_result_is_a_fault(monkeypatch):
    times = []

    class Growing:
        """Each sum is larger than the one before."""

        @staticmethod
        def sum(x):
            times.append(1)
            return np.sum(x) * len(times)

    monkeypatch.setitem(SCOPE, "np", Growing)
    assert "by NumPy" in fault("np.sum(x)", 0)


def test_wrong_ops_on_a_tape_are_a_fault(monkeypatch):
    right = evaluate
    monkeypatch.setattr(f"{__name__}.evaluate", lambda *given: [value * 1.00001 for value in right(*given)])
    assert "by NumPy" in fault("np.sum(x)", 0)


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
@pytest.mark.parametrize("function", [np.sign, np.rint, np.round, np.nan_to_num])
def test_complex_numbers_with_infinite_parts(function, dtype):
    parts = [0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]
    z = np.array([complex(real, imaginary) for real in parts for imaginary in parts], dtype)
    found = yota.compile(yota.trace(lambda z: function(z) * 1, z)[1])(z)
    assert found.dtype == dtype
    with np.errstate(all="ignore"):
        expected = function(z)
    for mine, theirs in ((found.real, expected.real), (found.imag, expected.imag)):
        np.testing.assert_allclose(mine, theirs, rtol=4 * np.finfo(dtype).eps)
