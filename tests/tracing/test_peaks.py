"""Peaks of scipy.signal, and groups of roots: against SciPy's values nearby."""

import numpy as np
import pytest
import scipy.signal as signal

import yota
from tests.tracing.checking import check, real

WAVE = np.random.default_rng(3).permutation(40) / 2
PEAKS = signal.find_peaks(WAVE)[0]
CONDITIONS = {"height": 0.1, "threshold": 0.7, "distance": 3, "prominence": 1.2, "width": 0.5}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: signal.peak_prominences(x, PEAKS),
        lambda x: signal.peak_prominences(x, list(PEAKS), wlen=21.2)[0],
        lambda x: signal.peak_widths(x, PEAKS),
        lambda x: signal.peak_widths(x, PEAKS, 0.3, signal.peak_prominences(x, PEAKS, 31), 31),
        lambda x: tuple(signal.find_peaks(x, **CONDITIONS)[1].values()),
        lambda x: x[signal.find_peaks(x)[0]] ** 2,
        lambda x: x[signal.find_peaks(list(x), height=(None, 15.2))[0]],
    ],
)
def test_peaks(function):
    check(function, WAVE, second=True)


def test_widths_by_the_height_where_they_are_measured():
    check(lambda x, r: signal.peak_widths(x, PEAKS, rel_height=r), WAVE, 0.43)


def test_flat_peaks_are_read_in_their_middle():
    x = np.array([0, 1, 1, 0, 2, 2, 2, 1, 3, 0, 0.0])
    found = yota.gradient(lambda x: np.sum(x[signal.find_peaks(x, plateau_size=1)[0]]))(x)
    np.testing.assert_array_equal(np.flatnonzero(found), signal.find_peaks(x)[0])
    sizes = yota.grad(lambda x: np.sum(signal.find_peaks(x, plateau_size=1)[1]["plateau_sizes"] * x[1]), x)
    assert sizes[0] == 6.0
    assert np.all(yota.gradient(lambda x: np.sum(x) + len(signal.find_peaks(x)[0]))(np.ones(4)) == 1)


def test_peaks_of_another_signal():
    slope = yota.gradient(lambda x: np.sum(signal.peak_prominences(x, signal.find_peaks(x)[0])[0]), dynamic=True)
    for seed in range(4):
        x = real(30, seed=seed)
        peaks = signal.find_peaks(x)[0]
        _, left, right = signal.peak_prominences(x, peaks)
        expected = np.zeros(30)
        np.add.at(expected, peaks, 1)
        np.subtract.at(expected, np.where(x[left] > x[right], left, right), 1)
        np.testing.assert_array_equal(slope(x), expected)


@pytest.mark.parametrize("rtype", ["avg", "min", "max"])
def test_groups_of_roots(rtype):
    check(lambda p: signal.unique_roots(p, 0.4, rtype), np.array([1.0, 1.3, 4, 2.5, 2.8]), second=True)
    check(lambda p: signal.unique_roots(p, tol=0.5, rtype=rtype), np.array([1j, 0.3 + 1j, 3, 2 + 1j]))


@pytest.mark.parametrize("function", [signal.residue, signal.residuez])
def test_partial_fractions(function):
    check(lambda b, a: function(b, a), np.array([1.0, 2.5, 3, 1]), np.array([1.0, 4.5, 2.2, 0.3]), second=True)
    check(lambda b, a: function(b, a)[0], np.array([1.0, 2]), np.array([1.0, 1, 5, 2]), second=True)
    double = np.poly([-1.0, -1, -2])
    check(lambda b: function(b, double), np.array([1.0, 2]))


@pytest.mark.parametrize("function", [signal.invres, signal.invresz])
def test_fractions_from_their_parts(function):
    check(function, np.array([0.3, -1.2, 2.0]), np.array([-1.0, -3, -0.4]), np.array([1.5, 0.7]))


@pytest.mark.parametrize("shape", [(3, 5), (5, 1)])
def test_separable_filters(shape):
    check(signal.sepfir2d, real(6, 7), *(real(each) for each in shape), second=True)
    check(lambda x: signal.sepfir2d(x, [0.25, 0.5, 0.25], np.ones(1)), real(4, 4))
