"""Long loops: CPU time to the first gradient and of a call, beside C by hand, JAX, PyTorch and CasADi.

yota takes plain Python loops, except for the wave equation and the systems of 100 states, which call `yota.scan`. For
these, ``forward`` is the generated code of the value alone. JAX unrolls plain loops, so its loops are written with
``lax.scan``. PyTorch runs the plain loops as they are, step by step. A library that is not
installed is left out, and the table says so.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
    by_hand
        Function of ``hand/loops.c``, and the number of its steps.
    forward
        Whether the value alone is measured too.
    """

    name: str
    function: Callable[..., Any]
    other: Callable[..., Any]
    arguments: tuple[Any, ...]
    torch: Callable[..., Any] | None = None
    by_hand: tuple[str, int] | None = None
    forward: bool = False


def _sine(steps: int) -> Loop:
    def function(x: Any) -> Any:
        for _ in range(steps):
            x = x + 0.001 * np.sin(x)
        return np.sum(x)

    def other(jax: Any, jnp: Any, x: Any) -> Any:
        return jnp.sum(jax.lax.scan(lambda c, _: (c + 0.001 * jnp.sin(c), None), x, None, length=steps)[0])

    arguments = (np.linspace(0.1, 1.0, 10),)
    return Loop(f"sine, {steps:,} steps of 10 numbers", function, other, arguments, by_hand=("sine", steps))


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

    name, p = f"Runge-Kutta 4, 2 states, {steps:,} steps", np.array([1.1, 0.4, 0.1, 0.4])
    return Loop(name, function, other, (p,), by_hand=("runge_kutta", steps))


def _network(xp: Any, state: Any, p: Any, weights: Any) -> Any:
    return p[0] * xp.tanh(weights @ state) - p[1] * state + p[2]


def _ring(xp: Any, state: Any, p: Any, _: Any) -> Any:
    """The system of Lorenz of 1996."""
    return p[0] * (xp.roll(state, -1) - xp.roll(state, 2)) * xp.roll(state, 1) - p[1] * state + p[2]


def _system(name: str, slopes: Callable[..., Any], steps: int, states: int = 100, h: float = 0.001) -> Loop:
    weights = np.random.default_rng(0).normal(size=(states, states)) / 10
    start = np.linspace(0.0, 1.0, states)

    def step(xp: Any, y: Any, p: Any) -> Any:
        one = slopes(xp, y, p, weights)
        two = slopes(xp, y + h / 2 * one, p, weights)
        three = slopes(xp, y + h / 2 * two, p, weights)
        return y + h / 6 * (one + 2 * two + 2 * three + slopes(xp, y + h * three, p, weights))

    def function(p: Any) -> Any:
        import yota

        return np.sum(yota.scan(lambda y, _: (step(np, y, p), None), start, length=steps)[0] ** 2)

    def other(jax: Any, jnp: Any, p: Any) -> Any:
        first = jnp.asarray(start)
        return jnp.sum(jax.lax.scan(lambda y, _: (step(jnp, y, p), None), first, None, length=steps)[0] ** 2)

    name = f"Runge-Kutta 4, {name} of {states} states, {steps:,} steps"
    return Loop(name, function, other, (np.array([1.0, 1.0, 0.5]),), forward=True)


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

    name, speed = f"wave equation, {size} x {size}, {steps:,} steps", rng.uniform(0.5, 1.5, (size, size))
    return Loop(name, function, other, (speed,), forward=True)


LOOPS = (
    _sine(1_000),
    _sine(100_000),
    _chain(1_600),
    _chain(10_000),
    _chain(100_000),
    _runge_kutta(1_000),
    _runge_kutta(10_000),
    _system("network", _network, 10_000),
    _system("ring", _ring, 10_000),
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
            if loop.by_hand:
                makers["C by hand"] = lambda loop=loop: _by_hand(*loop.by_hand)
            if importlib.util.find_spec("jax"):
                makers["jax (scan)"] = lambda loop=loop: _of_jax(loop)
            if importlib.util.find_spec("torch") and loop.torch is not None:
                makers["torch"] = lambda loop=loop: _of_torch(loop)
            found[loop.name] = _measured(makers, loop.arguments)
            if loop.forward:
                values = {f"forward ({target})": partial(_forward, loop, target) for target in _TARGETS}
                found[loop.name] |= _measured(values, loop.arguments, lambda value: [float(value)])
    return {**found, **measure_constrained(), **measure_memory()}


def _by_hand(name: str, steps: int) -> Callable[..., Any]:
    from yota.run.machine import native

    compute = getattr(native.build(Path(__file__).with_name("hand").joinpath("loops.c").read_text()), name)

    def call(x: Any) -> tuple[float, Any]:
        slope = np.empty_like(x)
        return compute(x, steps, slope), slope

    return call


def _forward(loop: Loop, target: str) -> Callable[..., Any]:
    import yota

    return yota.compile(yota.trace(loop.function, *loop.arguments)[1], target=target)


_STATES = 2_000 * 500 * 500 * 8
_ALONE = {
    "sine, 1,000 steps": "_gradient(_sine(1_000))",
    "sine, 1,000,000 steps": "_gradient(_sine(1_000_000))",
    "wave equation, 500 x 500, 2,000 steps": "_gradient(_wave(500, 2_000), _STATES // 40)",
}


def _gradient(loop: Loop, memory: int | None = None) -> None:
    import yota

    yota.configure(memory=memory)
    yota.value_and_grad(loop.function, target="c")(*loop.arguments)


def measure_memory() -> dict[str, dict[str, dict[str, float]]]:
    """The memory in MB of processes that compute one gradient each, and that of all states of the wave equation."""
    found = {}
    for name, call in _ALONE.items():
        text = f"import resource; from benchmarks import loops; exec({call!r}, vars(loops))"
        text += "; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
        found[name] = {"memory": int(done.stdout) / 1024}
    found["all states of the wave equation"] = {"memory": _STATES / 2**20}
    return {"peak memory, first gradient in C": found}


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
            if "memory" in times:
                print(f"    {who:40} {times['memory']:8.0f} MB")
            else:
                print(f"    {who:22} first {times['first']:8.3f}   call {1e3 * times['call']:10.3f}")
