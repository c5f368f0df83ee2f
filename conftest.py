"""Modules for libraries that are not installed have no doctests to run."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [f"yota/interop/{name}.py" for name in ("jax", "torch") if find_spec(name) is None]
