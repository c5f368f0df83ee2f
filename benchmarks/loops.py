"""Long loops: CPU time to the first gradient and of a call, beside JAX with ``lax.scan``, PyTorch and CasADi.

yota takes plain Python loops, except for the wave equation, which calls `yota.scan`. JAX unrolls plain loops, so its
loops are written with ``lax.scan``. PyTorch runs the plain loops as they are, step by step. A library that is not
installed is left out, and the table says so.
"""

from __future__ import annotations

import importlib.util
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
    torch
        The same for PyTorch: takes ``torch`` and the arguments; None where its own steps would take minutes.
    """

    name: str
    function: Callable[..., Any]
    other: Callable[..., Any]
    arguments: tuple[Any, ...]
    torch: Callable[..., Any] | None = None


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

    def torch_form(torch: Any, logits: Any) -> Any:
        weights = torch.exp(logits)
        transitions = weights / torch.sum(weights, 1, keepdim=True)
        belief, found = torch.full((states,), 1 / states, dtype=torch.float64), 0.0
        for row in torch.as_tensor(emissions):
            belief, more = forward(torch, belief, row, transitions)
            found = found + more
        return found

    name = f"hidden Markov model, {steps:,} steps of {states} states"
    return Loop(name, function, other, (logits,), torch_form)


def _kalman(steps: int, size: int) -> Loop:
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(steps, size))
    one = np.eye(size)

    def step(xp: Any, mean: Any, spread: Any, row: Any, dynamics: Any) -> Any:
        mean, spread = dynamics @ mean, dynamics @ spread @ dynamics.T + 0.1 * one
        apart = row - mean
        total = spread + 0.5 * one
        gain = xp.linalg.solve(total, spread).T
        loss = apart @ xp.linalg.solve(total, apart) + xp.linalg.slogdet(total)[1]
        return mean + gain @ apart, (one - gain) @ spread, loss

    def function(dynamics: Any) -> Any:
        mean, spread, found = np.zeros(size), np.eye(size), 0.0
        for t in range(steps):
            mean, spread, loss = step(np, mean, spread, seen[t], dynamics)
            found = found + loss
        return found

    def other(jax: Any, jnp: Any, dynamics: Any) -> Any:
        def trip(state: Any, row: Any) -> Any:
            mean, spread, loss = step(jnp, *state, row, dynamics)
            return (mean, spread), loss

        start = jnp.zeros(size), jnp.eye(size)
        return jnp.sum(jax.lax.scan(trip, start, jnp.asarray(seen))[1])

    def torch_form(torch: Any, dynamics: Any) -> Any:
        nonlocal one
        plain, one = one, torch.eye(size, dtype=torch.float64)
        mean, spread, found = torch.zeros(size, dtype=torch.float64), one, 0.0
        for row in torch.as_tensor(seen):
            mean, spread, loss = step(torch, mean, spread, row, dynamics)
            found = found + loss
        one = plain
        return found

    arguments = (0.9 * np.eye(size) + 0.05 * rng.normal(size=(size, size)),)
    return Loop(f"Kalman filter, {steps:,} steps of {size} x {size}", function, other, arguments, torch_form)


def _lstm(steps: int, width: int, layers: int) -> Loop:
    """The character model of ADBench: gates that are elementwise in the state, as in its reference."""
    rng = np.random.default_rng(0)
    text = np.eye(width)[rng.integers(0, width, steps)]

    def cell(xp: Any, weight: Any, hidden: Any, state: Any, value: Any) -> Any:
        forget = 1 / (1 + xp.exp(-(value * weight[0] + weight[4])))
        ingate = 1 / (1 + xp.exp(-(hidden * weight[1] + weight[5])))
        outgate = 1 / (1 + xp.exp(-(value * weight[2] + weight[6])))
        state = state * forget + ingate * xp.tanh(hidden * weight[3] + weight[7])
        return outgate * xp.tanh(state), state

    def step(xp: Any, states: Any, letter: Any, weights: Any) -> Any:
        value, after = letter * weights[layers, 0], []
        for layer in range(layers):
            hidden, state = cell(xp, weights[layer], states[2 * layer], states[2 * layer + 1], value)
            after += [hidden, state]
            value = hidden
        scores = value * weights[layers, 1] + weights[layers, 2]
        return tuple(after), scores - xp.log(xp.sum(xp.exp(scores)))

    def function(weights: Any) -> Any:
        states, found = (np.zeros(width),) * (2 * layers), 0.0
        for t in range(steps - 1):
            states, scores = step(np, states, text[t], weights)
            found = found + np.sum(text[t + 1] * scores)
        return -found / (steps - 1)

    def other(jax: Any, jnp: Any, weights: Any) -> Any:
        def trip(states: Any, pair: Any) -> Any:
            states, scores = step(jnp, states, pair[0], weights)
            return states, jnp.sum(pair[1] * scores)

        rows = jnp.asarray(text[:-1]), jnp.asarray(text[1:])
        return -jnp.sum(jax.lax.scan(trip, (jnp.zeros(width),) * (2 * layers), rows)[1]) / (steps - 1)

    def torch_form(torch: Any, weights: Any) -> Any:
        letters = torch.as_tensor(text)
        states, found = (torch.zeros(width, dtype=torch.float64),) * (2 * layers), 0.0
        for t in range(steps - 1):
            states, scores = step(torch, states, letters[t], weights)
            found = found + torch.sum(letters[t + 1] * scores)
        return -found / (steps - 1)

    arguments = (0.5 * rng.normal(size=(layers + 1, 8, width)),)
    return Loop(f"LSTM, {steps:,} steps of {layers} x {width}", function, other, arguments, torch_form)


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
    _chain(100_000),
    _runge_kutta(1_000),
    _runge_kutta(10_000),
    _markov(1_000, 50),
    _kalman(1_000, 4),
    _lstm(1_024, 14, 2),
    _wave(100, 200),
)


def luksan_vlcek(size: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The objective and the constraints of Luksan and Vlcek's problem, as ExaModels writes them."""

    def objective(x: Any) -> Any:
        return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, size))

    def constraint(xp: Any, x: Any, i: int) -> Any:
        return (
            3 * x[i + 1] ** 3
            + 2 * x[i + 2]
            - 5
            + xp.sin(x[i + 1] - x[i + 2]) * xp.sin(x[i + 1] + x[i + 2])
            + 4 * x[i + 1]
            - x[i] * xp.exp(x[i] - x[i + 1])
            - 3
        )

    return objective, constraint


def measure_constrained(size: int = 10_000) -> dict[str, dict[str, dict[str, float]]]:
    """The same of gradient, constraint Jacobian and Lagrangian Hessian of a problem with many constraints."""
    objective, constraint = luksan_vlcek(size)
    x = np.where(np.arange(size) % 2, 1.0, -1.2)
    weights = np.linspace(0.5, 1.5, size - 2)

    def of_yota(target: str) -> Callable[[], Callable[..., Any]]:
        import yota

        def constraints(x: Any) -> Any:
            return np.array([constraint(np, x, i) for i in range(size - 2)])

        def lagrangian(x: Any, weights: Any) -> Any:
            return objective(x) + np.sum(weights * constraints(x))

        def make() -> Callable[..., Any]:
            parts = (
                yota.gradient(objective, target=target),
                yota.jacobian(constraints, target=target, sparse=True),
                yota.hessian(lagrangian, target=target, sparse=True, wrt="x"),
            )
            return lambda x, weights: [parts[0](x), parts[1](x).data, parts[2](x, weights).data]

        return make

    def of_casadi() -> Callable[..., Any]:
        import casadi

        v, w = casadi.SX.sym("x", size), casadi.SX.sym("w", size - 2)
        entries = [v[i] for i in range(size)]
        value = objective(entries)
        found = casadi.vertcat(*[constraint(casadi, entries, i) for i in range(size - 2)])
        hessian = casadi.hessian(value + casadi.dot(w, found), v)[0]
        made = casadi.Function("f", [v, w], [casadi.gradient(value, v), casadi.jacobian(found, v), hessian])

        def call(x: Any, weights: Any) -> list[Any]:
            slope, *rest = made(x, weights)
            return [np.array(slope).ravel(), *(np.array(each.nonzeros()) for each in rest)]

        return call

    makers: dict[str, Callable[[], Callable[..., Any]]] = {f"yota ({target})": of_yota(target) for target in _TARGETS}
    if importlib.util.find_spec("casadi"):
        makers["casadi (SX)"] = of_casadi
    name = f"Luksan and Vlcek, n = {size:,}: gradient, constraint Jacobian, Hessian"
    return {name: _measured(makers, (x, weights), lambda parts: [float(np.sum(np.abs(each))) for each in parts])}


def measure_loops(loops: tuple[Loop, ...] = LOOPS) -> dict[str, dict[str, dict[str, float]]]:
    """CPU seconds to the first gradient, and of a call, by loop and by who computes it."""
    import yota

    found: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, YOTA_CACHE_DIR=folder):
        for target in _TARGETS:
            yota.value_and_grad(_sine(3).function, target=target)(np.ones(2))
        for loop in loops:
            makers: dict[str, Callable[[], Callable[..., Any]]] = {
                f"yota ({target})": lambda target=target, loop=loop: yota.value_and_grad(loop.function, target=target)
                for target in _TARGETS
            }
            if importlib.util.find_spec("jax"):
                makers["jax (scan)"] = lambda loop=loop: _of_jax(loop)
            if importlib.util.find_spec("torch") and loop.torch is not None:
                makers["torch"] = lambda loop=loop: _of_torch(loop)
            found[loop.name] = _measured(makers, loop.arguments)
    return {**found, **measure_constrained()}


def _of_jax(loop: Loop) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    made = jax.jit(jax.value_and_grad(lambda *args: loop.other(jax, jnp, *args)))
    return lambda *args: jax.block_until_ready(made(*args))


def _of_torch(loop: Loop) -> Callable[..., Any]:
    import torch

    torch.set_num_threads(1)

    def call(*args: Any) -> Any:
        first, *rest = (torch.tensor(each, dtype=torch.float64) for each in args)
        first.requires_grad_(True)
        assert loop.torch is not None
        value = loop.torch(torch, first, *rest)
        value.backward()
        return value.item(), first.grad.numpy()

    return call


def _summary(result: Any) -> list[float]:
    value, slope = result
    return [float(value), float(np.linalg.norm(np.asarray(slope)))]


def _measured(
    makers: dict[str, Callable[[], Callable[..., Any]]],
    arguments: tuple[Any, ...],
    summary: Callable[[Any], list[float]] = _summary,
) -> dict[str, Any]:
    firsts, calls, made = {}, {}, {}
    for name, maker in makers.items():
        started = time.process_time()
        made[name] = maker()
        result = made[name](*arguments)
        firsts[name] = time.process_time() - started
        calls[name] = summary(result)
    for name, each in calls.items():
        np.testing.assert_allclose(each, next(iter(calls.values())), rtol=1e-6, err_msg=name)
    times: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(_CALLS):
        for name, function in made.items():
            started = time.process_time()
            function(*arguments)
            times[name].append(time.process_time() - started)
    return {name: {"first": firsts[name], "call": statistics.median(times[name])} for name in made}


def show_loops(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print a table."""
    missing = [name for name in ("jax", "torch", "casadi") if importlib.util.find_spec(name) is None]
    print(f"Not installed, and left out: {', '.join(missing)}." if missing else "All libraries are there.")
    print("CPU time to the first derivatives (s), and of a call (ms):")
    for name, each in found.items():
        print(f"  {name}")
        for who, times in each.items():
            print(f"    {who:22} first {times['first']:8.3f}   call {1e3 * times['call']:10.3f}")
