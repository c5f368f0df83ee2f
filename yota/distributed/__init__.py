"""Derivatives over data in chunks, on one machine or many, by Dask.

Needs ``yota-ad[dask]``. `yota.batch` and its derivatives take Dask arrays by themselves.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("dask") is None:
    raise ImportError("yota.distributed needs Dask: pip install 'yota-ad[dask]'")

from yota.distributed.derivatives import hvp, jacobian, value_and_grad

__all__ = ["hvp", "jacobian", "value_and_grad"]
