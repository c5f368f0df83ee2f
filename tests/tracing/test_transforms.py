"""The transforms of scipy.fft give what SciPy gives, with derivatives as central differences have them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.fftpack
import scipy.linalg
import scipy.signal

import yota
from tests.tracing.checking import check, compound, real
from yota import errors

FOURIER = ["fft", "ifft", "rfft", "irfft", "hfft", "fft2", "ifftn", "rfftn", "irfft2"]
WAVES = ["dct", "idct", "dst", "idst"]


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("name", FOURIER)
def test_fourier_transforms(name, norm):
    transform = getattr(scipy.fft, name)
    check(lambda x: transform(x, norm=norm, workers=1), real(4, 6))
    if "rfft" not in name:
        check(lambda z: transform(z, norm=norm), compound(3, 4))


def test_arguments_of_fourier_transforms():
    check(lambda x: scipy.fft.fft(x, 5, 0, "forward", True), real(4, 3))
    check(lambda x: scipy.fft.fftshift(scipy.fft.fft2(x, (3, 5), overwrite_x=True)), real(4, 4))


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("name", WAVES)
def test_transforms_of_cosines_and_sines(name, kind):
    transform, along = getattr(scipy.fft, name), getattr(scipy.fft, f"{name}n")
    check(lambda x: transform(x, kind), real(3, 5))
    check(lambda x: transform(x, type=kind, n=4, axis=0, norm="ortho") + transform(x[:, :1], kind, 4, 0), real(6, 2))
    check(lambda x: along(x, kind, axes=(0,)) + along(x, kind, norm="ortho"), real(3, 4))
    check(lambda x: along(x, kind, s=(3,)), real(3, 4))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "dct", "idct", "dst", "idst"])
def test_transforms_of_the_older_package(name):
    transform = getattr(scipy.fftpack, name)
    check(lambda x: transform(x, n=4, axis=0) + transform(x[::-1], n=4, axis=0), real(6, 3))
    if "rfft" not in name:
        check(lambda z: transform(z), compound(2, 5))
        several = getattr(scipy.fftpack, f"{name}n")
        check(lambda x: several(x, shape=(4, 3), axes=(0, 1)), real(3, 4))


def test_precision_stays():
    x = real(6).astype(np.float32)
    assert yota.trace(scipy.fft.dct, x)[0].dtype == np.float32
    assert yota.trace(lambda n: scipy.fft.dct(n), np.arange(4))[0].dtype == np.float64
    assert yota.itrace(lambda x: scipy.fft.dct(x), x)[0].dtype == np.float32


def test_long_transforms_are_refused():
    with pytest.raises(errors.TracingError, match="dct of 3000 numbers"):
        yota.trace(lambda x: scipy.fft.dct(x), np.ones(3000))


def test_functions_of_scipy_that_transform():
    check(lambda x: scipy.signal.hilbert(x), real(8))
    check(lambda x: scipy.signal.oaconvolve(x, np.array([1.0, 2.0, 0.5])), real(9))
    check(lambda c: scipy.linalg.matmul_toeplitz(c, np.arange(5.0)), real(5))
    check(lambda b: scipy.signal.freqz(b, worN=8)[1], real(4))
