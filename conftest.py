"""Modules for libraries that are not installed have no doctests to run."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDED = {"jax": "yota/interop/jax.py", "torch": "yota/interop/torch.py", "dask": "yota/distributed"}

collect_ignore = [path for name, path in _NEEDED.items() if find_spec(name) is None]
