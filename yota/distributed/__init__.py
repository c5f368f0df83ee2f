"""Derivatives over data in chunks, on one or many machines, with Dask.

It needs ``yota-ad[dask]``. `yota.batch` and its derivatives also accept Dask arrays.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError("yota.distributed needs Dask: pip install 'yota-ad[dask]'")

from yota.distributed.chunked import hvp, jacobian, value_and_grad

__all__ = ["hvp", "jacobian", "value_and_grad"]
