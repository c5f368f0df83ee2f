"""CPU time to the first value and gradient of functions that were never compiled before, beside jitted JAX."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.formulas import FORMULAS, Formula

__all__ = ["measure_first", "show_first"]

_NAMED = 5
"""The worst, which are named."""


def measure_first() -> dict[str, dict[str, float]]:
    """Seconds of yota and of JAX for each formula, each without anything that was kept before."""
    import jax

    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, YOTA_CACHE_DIR=folder):
        # What is imported and read once in a process does not count.
        warm = Formula("warm", lambda xp, x: xp.sum(xp.sin(x) ** 2) / x[0], 3)
        _by_yota(warm), _by_jax(warm)
        return {each.name: {"yota": _by_yota(each), "jax": _by_jax(each)} for each in FORMULAS}


def _by_yota(formula: Formula) -> float:
    import yota

    def function(x: Any) -> Any:
        return formula.function(np, x)

    return _timed(lambda: yota.value_and_grad(function)(formula.point()))


def _by_jax(formula: Formula) -> float:
    import jax
    import jax.numpy as jnp

    jax.clear_caches()
    point = jnp.asarray(formula.point())
    found = jax.jit(jax.value_and_grad(lambda x: formula.function(jnp, x)))
    return _timed(lambda: jax.block_until_ready(found(point)))


def _timed(action: Callable[[], Any]) -> float:
    started = time.process_time()
    action()
    return time.process_time() - started


def show_first(found: dict[str, dict[str, float]]) -> None:
    """Print the distribution of the ratios."""
    ratios = {name: each["yota"] / each["jax"] for name, each in found.items()}
    ordered = sorted(ratios.values())
    slower = sum(ratio > 1 for ratio in ordered)
    print(f"CPU time to the first value and gradient of {len(ordered)} functions, yota's over jitted JAX's:")
    print(f"  median {statistics.median(ordered):.2f}, 90 % below {ordered[int(0.9 * len(ordered))]:.2f}, ", end="")
    print(f"worst {ordered[-1]:.2f}, slower than JAX {100 * slower / len(ordered):.0f} %")
    for name in sorted(ratios, key=ratios.__getitem__, reverse=True)[:_NAMED]:
        print(
            f"  {ratios[name]:5.2f}  {name}: {1e3 * found[name]['yota']:.0f} ms, JAX {1e3 * found[name]['jax']:.0f} ms"
        )
