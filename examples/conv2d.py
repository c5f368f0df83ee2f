"""A library with a function of its own: two-dimensional convolution in NumPy, and a rule file with its derivatives.

Arrays of images are ``[image, channel, row, column]``, filters are ``[output channel, input channel, row, column]``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import yota

__all__ = ["conv", "conv_data_grad", "conv_filter_grad"]


def conv(A, W, *, pad=0):
    """Correlate images with filters, after adding ``pad`` rows and columns of zeros on each side."""
    return np.einsum("nihwpq,oipq->nohw", _windows(_padded(A, pad), W.shape[2:]), W, optimize=True)


def conv_data_grad(dy, W, *, pad=0):
    """Adjoint of the images, from the adjoint ``dy`` of the result: correlate with the filters turned around."""
    rows, columns = W.shape[2:]
    wide = np.pad(dy, ((0, 0), (0, 0), (rows - 1, rows - 1), (columns - 1, columns - 1)))
    turned = W[:, :, ::-1, ::-1]
    full = np.einsum("nohwpq,oipq->nihw", _windows(wide, (rows, columns)), turned, optimize=True)
    return full[:, :, pad : full.shape[2] - pad, pad : full.shape[3] - pad]


def conv_filter_grad(A, dy, *, pad=0):
    """Adjoint of the filters: correlate the images with the adjoint ``dy`` of the result."""
    return np.einsum("nipqhw,nohw->oipq", _windows(_padded(A, pad), dy.shape[2:]), dy, optimize=True)


def _padded(images, pad):
    return np.pad(images, ((0, 0), (0, 0), (pad, pad), (pad, pad)))


def _windows(images, shape):
    return sliding_window_view(images, shape, axis=(2, 3))


yota.load_rules(Path(__file__).with_name("conv2d.rules"))
