"""Long loops: CPU time to the first gradient and of a call, beside jitted JAX with ``lax.scan``.

yota takes plain Python loops, except for the wave equation, which calls `yota.scan`. JAX unrolls plain loops, so its
loops are written with ``lax.scan``.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

__all__ = ["LOOPS", "Loop", "measure_loops", "show_loops"]

_CALLS = 5
_TARGETS = ("numpy", "c")


@dataclass(frozen=True)
class Loop:
    """One loss, as yota takes it and as JAX takes it.

    Parameters
    ----------
    name
        What it is.
    function
        Takes the arguments; gives a number.
    other
        The same for JAX: takes ``jax``, ``jax.numpy`` and the arguments.
    arguments
        Arrays; derivatives are by the first.
    """

    name: str
    function: Callable[..., Any]
    other: Callable[..., Any]
    arguments: tuple[Any, ...]


def _sine(steps: int) -> Loop:
    def function(x: Any) -> Any:
        for _ in range(steps):
            x = x + 0.001 * np.sin(x)
        return np.sum(x)

    def other(jax: Any, jnp: Any, x: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda c, _: (c + 0.001 * jnp.sin(c), None), x, None, length=steps)[0])

    return Loop(f"sine, {steps:,} steps of 10 numbers", function, other, (np.linspace(0.1, 1.0, 10),))


def _chain(size: int) -> Loop:
    def function(x: Any) -> Any:
        return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, size))

    def other(jax: Any, _: Any, x: Any) -> Any:
        def step(total: Any, pair: Any) -> Any:
            before, after = pair
            return total + 100 * (before**2 - after) ** 2 + (before - 1) ** 2, None

        return jax.lax.scan(step, 0.0, (x[:-1], x[1:]))[0]

    return Loop(f"chained sum, n = {size:,}", function, other, (np.linspace(-1.0, 1.0, size),))


def _slopes(xp: Any, state: Any, p: Any) -> Any:
    prey, hunters = state[0], state[1]
    return xp.stack([p[0] * prey - p[1] * prey * hunters, p[2] * prey * hunters - p[3] * hunters])


def _step(xp: Any, state: Any, p: Any) -> Any:
    one = _slopes(xp, state, p)
    two = _slopes(xp, state + 0.005 * one, p)
    three = _slopes(xp, state + 0.005 * two, p)
    four = _slopes(xp, state + 0.01 * three, p)
    return state + 0.01 / 6 * (one + 2 * two + 2 * three + four)


def _runge_kutta(steps: int) -> Loop:
    def function(p: Any) -> Any:
        state = np.array([1.0, 0.5])
        for _ in range(steps):
            state = _step(np, state, p)
        return np.sum(state**2)

    def other(jax: Any, jnp: Any, p: Any) -> Any:
        start = jnp.array([1.0, 0.5])
        return jnp.sum(jax.lax.scan(lambda c, _: (_step(jnp, c, p), None), start, None, length=steps)[0] ** 2)

    return Loop(f"Runge-Kutta 4, 2 states, {steps:,} steps", function, other, (np.array([1.1, 0.4, 0.1, 0.4]),))


def _markov(steps: int, states: int) -> Loop:
    rng = np.random.default_rng(0)
    emissions = rng.uniform(0.1, 1.0, (steps, states))
    logits = rng.normal(size=(states, states))

    def forward(xp: Any, belief: Any, row: Any, transitions: Any) -> Any:
        belief = (belief @ transitions) * row
        total = xp.sum(belief)
        return belief / total, xp.log(total)

    def function(logits: Any) -> Any:
        weights = np.exp(logits)
        transitions = weights / np.sum(weights, axis=1, keepdims=True)
        belief, found = np.full(states, 1 / states), 0.0
        for t in range(steps):
            belief, more = forward(np, belief, emissions[t], transitions)
            found = found + more
        return found

    def other(jax: Any, jnp: Any, logits: Any) -> Any:
        weights = jnp.exp(logits)
        transitions = weights / jnp.sum(weights, axis=1, keepdims=True)
        start = jnp.full(states, 1 / states)
        rows = jnp.asarray(emissions)
        return jnp.sum(jax.lax.scan(lambda c, row: forward(jnp, c, row, transitions), start, rows)[1])

    return Loop(f"hidden Markov model, {steps:,} steps of {states} states", function, other, (logits,))


def _wave(size: int, steps: int) -> Loop:
    rng = np.random.default_rng(0)

    def step(xp: Any, state: Any, speed: Any) -> Any:
        now, before = state
        around = xp.roll(now, 1, 0) + xp.roll(now, -1, 0) + xp.roll(now, 1, 1) + xp.roll(now, -1, 1)
        return 2 * now - before + 0.1 * speed * (around - 4 * now), now

    start = rng.normal(size=(size, size))

    def function(speed: Any) -> Any:
        import yota

        return np.sum(yota.scan(lambda c, _: (step(np, c, speed), None), (start, start), length=steps)[0][0] ** 2)

    def other(jax: Any, jnp: Any, speed: Any) -> Any:
        first = jnp.asarray(start)
        found, _ = jax.lax.scan(lambda c, _: (step(jnp, c, speed), None), (first, first), None, length=steps)
        return jnp.sum(found[0] ** 2)

    return Loop(
        f"wave equation, {size} x {size}, {steps} steps", function, other, (rng.uniform(0.5, 1.5, (size, size)),)
    )


LOOPS = (
    _sine(1_000),
    _sine(100_000),
    _chain(1_600),
    _chain(10_000),
    _runge_kutta(1_000),
    _runge_kutta(10_000),
    _markov(1_000, 50),
    _wave(100, 200),
)


def measure_loops(loops: tuple[Loop, ...] = LOOPS) -> dict[str, dict[str, dict[str, float]]]:
    """CPU seconds to the first gradient, and of a call, by loop and by who computes it."""
    import jax
    import jax.numpy as jnp

    import yota

    jax.config.update("jax_enable_x64", True)
    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, YOTA_CACHE_DIR=folder):
        for target in _TARGETS:
            yota.value_and_grad(_sine(3).function, target=target)(np.ones(2))
        for loop in loops:
            makers: dict[str, Callable[[], Callable[..., Any]]] = {
                f"yota ({target})": lambda target=target, loop=loop: yota.value_and_grad(loop.function, target=target)
                for target in _TARGETS
            }

            def of_jax(loop: Loop = loop) -> Callable[..., Any]:
                made = jax.jit(jax.value_and_grad(lambda *args: loop.other(jax, jnp, *args)))
                return lambda *args: jax.block_until_ready(made(*args))

            makers["jax (scan)"] = of_jax
            found[loop.name] = _measured(makers, loop.arguments)
    return found


def _measured(makers: dict[str, Callable[[], Callable[..., Any]]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    firsts, calls, made = {}, {}, {}
    for name, maker in makers.items():
        started = time.process_time()
        made[name] = maker()
        value, slope = made[name](*arguments)
        firsts[name] = time.process_time() - started
        calls[name] = [float(value), float(np.linalg.norm(np.asarray(slope)))]
    for name, each in calls.items():
        np.testing.assert_allclose(each, calls["jax (scan)"], rtol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(_CALLS):
        for name, function in made.items():
            started = time.process_time()
            function(*arguments)
            times[name].append(time.process_time() - started)
    return {name: {"first": firsts[name], "call": statistics.median(times[name])} for name in made}


def show_loops(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print a table."""
    print("CPU time to the first gradient (s), and of a call (ms):")
    for name, each in found.items():
        print(f"  {name}")
        for who, times in each.items():
            print(f"    {who:14} first {times['first']:8.3f}   call {1e3 * times['call']:10.3f}")
