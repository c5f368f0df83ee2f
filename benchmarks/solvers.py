"""Solvers inside of functions: CPU time of value and gradient beside that of the solver alone, and beside peers."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

__all__ = ["CASES", "Case", "measure_solvers", "show_solvers"]

_ROUNDS = 5
Calls = dict[str, "Callable[[], Any] | str"]


@dataclass(frozen=True)
class Case:
    """One function that calls a solver.

    Parameters
    ----------
    name
        What it is.
    bar
        What yota promises, in words.
    make
        Calls by name; the first is what the others are divided by. ``make(True)`` is small. A text says why a peer
        cannot take part.
    """

    name: str
    bar: str
    make: Callable[[bool], Calls]


def _peer(package: str, make: Callable[[], Callable[[], Any]]) -> Callable[[], Any] | str:
    return make() if find_spec(package) else f"{package} is not installed"


def _jax() -> tuple[Any, Any]:
    """JAX in double precision, and its NumPy."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax, jax.numpy


def _by_casadi(
    rates: Callable[..., Any], p: Any, start: Any, times: Any, loss: Callable[[Any], Any], rtol: float, atol: float
) -> Callable[[], Any]:
    """The gradient of a loss of the states at ``times`` by CasADi's CVODES and its adjoint."""
    import casadi

    y, k = casadi.SX.sym("y", start.size), casadi.SX.sym("k", p.size)
    parts = [np.array(casadi.vertsplit(each), object) for each in (y, k)]
    system = {"x": y, "p": k, "ode": casadi.vertcat(*rates(*parts))}
    options = {"reltol": rtol, "abstol": atol, "max_num_steps": 100_000}
    steps = casadi.integrator("steps", "cvodes", system, 0.0, list(times), options)
    given = casadi.MX.sym("k", p.size)
    total = loss(steps(x0=start, p=given)["xf"])
    made = casadi.Function("gradient", [given], [casadi.gradient(total, given)])
    return lambda: np.asarray(made(p)).ravel()


def _prey(xp: Any, y: Any, p: Any) -> Any:
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def _lotka_volterra(quick: bool) -> Calls:
    from scipy.integrate import solve_ivp

    import yota

    end, count = (2.0, 5) if quick else (10.0, 200)
    times, p, start = np.linspace(0.05, end, count), np.array([1.5, 1.0, 0.8, 3.0]), np.array([1.0, 1.0])
    rtol, atol = 1e-6, 1e-9

    def rates(_: float, y: Any, p: Any) -> Any:
        return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]

    def states(p: Any) -> Any:
        return solve_ivp(rates, (0.0, end), start, t_eval=times, args=(p,), rtol=rtol, atol=atol).y

    data = states(1.1 * p)

    def loss(p: Any) -> Any:
        return np.sum((states(p) - data) ** 2)

    def of_diffrax() -> Callable[[], Any]:
        import diffrax

        jax, jnp = _jax()

        def loss(p: Any) -> Any:
            found = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda _, y, p: _prey(jnp, y, p)),
                diffrax.Dopri5(),
                0.0,
                end,
                None,
                jnp.asarray(start),
                p,
                saveat=diffrax.SaveAt(ts=jnp.asarray(times)),
                stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            )
            return jnp.sum((found.ys.T - data) ** 2)

        made, given = jax.jit(jax.value_and_grad(loss)), jnp.asarray(p)
        return lambda: jax.block_until_ready(made(given))[1]

    def of_autograd() -> Callable[[], Any]:
        import autograd.numpy as anp
        from autograd import value_and_grad
        from autograd.builtins import tuple as traced
        from autograd.scipy.integrate import odeint

        def loss(p: Any) -> Any:
            rows = odeint(
                lambda y, _, p: _prey(anp, y, p), start, np.append(0.0, times), traced((p,)), rtol=rtol, atol=atol
            )
            return anp.sum((rows[1:].T - data) ** 2)

        made = value_and_grad(loss)
        return lambda: made(p)[1]

    def of_torchdiffeq() -> Callable[[], Any]:
        import torch
        from torchdiffeq import odeint

        rows, first = torch.tensor(np.append(0.0, times)), torch.tensor(start)
        wanted = torch.tensor(data)

        def gradient() -> Any:
            given = torch.tensor(p, requires_grad=True)
            found = odeint(lambda _, y: _prey(torch, y, given), first, rows, rtol=rtol, atol=atol)
            torch.sum((found[1:].T - wanted) ** 2).backward()
            return given.grad.numpy()

        return gradient

    def of_casadi() -> Callable[[], Any]:
        import casadi

        def distance(found: Any) -> Any:
            return casadi.sumsqr(found - data)

        return _by_casadi(lambda y, p: rates(0.0, y, p), p, start, times, distance, rtol, atol)

    made, compiled = yota.value_and_grad(loss), yota.value_and_grad(loss, target="c")
    return {
        "plain": lambda: loss(p),
        "yota": lambda: made(p)[1],
        "yota, C": lambda: compiled(p)[1],
        "diffrax": _peer("diffrax", of_diffrax),
        "autograd": _peer("autograd", of_autograd),
        "torchdiffeq": _peer("torchdiffeq", of_torchdiffeq),
        "casadi": _peer("casadi", of_casadi),
    }


def _stiff(rates: Callable[..., Any], k: Any, start: Any, times: Any, scale: Any) -> Calls:
    from scipy.integrate import solve_ivp

    import yota

    options = {"method": "BDF", "t_eval": times, "rtol": 1e-8, "atol": 1e-11 * scale}
    span = (0.0, times[-1])
    slopes = yota.jacobian(rates, wrt=1)
    slopes(0.0, start, k)

    def loss(k: Any) -> Any:
        return np.sum((solve_ivp(rates, span, start, args=(k,), **options).y / scale[:, None]) ** 2)

    def plain() -> None:
        solve_ivp(lambda t, y: rates(t, y, k), span, start, jac=lambda t, y: slopes(t, y, k), **options)

    made = yota.value_and_grad(loss)

    def of_diffrax() -> Callable[[], Any]:
        import diffrax

        jax, jnp = _jax()

        def loss(k: Any) -> Any:
            found = diffrax.diffeqsolve(
                diffrax.ODETerm(lambda t, y, k: rates(t, y, k, jnp)),
                diffrax.Kvaerno5(),
                0.0,
                times[-1],
                1e-6,
                jnp.asarray(start),
                k,
                saveat=diffrax.SaveAt(ts=jnp.asarray(times)),
                stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-11 * scale),
                max_steps=100_000,
            )
            return jnp.sum((found.ys / scale) ** 2)

        found, given = jax.jit(jax.value_and_grad(loss)), jnp.asarray(k)
        return lambda: jax.block_until_ready(found(given))[1]

    def of_casadi() -> Callable[[], Any]:
        import casadi

        def loss(found: Any) -> Any:
            return casadi.sumsqr(found / casadi.repmat(casadi.DM(scale), 1, times.size))

        def listed(y: Any, k: Any) -> Any:
            return rates(0.0, y, k, SimpleNamespace(stack=list))

        return _by_casadi(listed, k, start, times, loss, 1e-8, 1e-11 * float(np.min(scale)))

    return {
        "plain": plain,
        "yota": lambda: made(k)[1],
        "diffrax": _peer("diffrax", of_diffrax),
        "casadi": _peer("casadi", of_casadi),
    }


def _robertson(quick: bool) -> Calls:
    def rates(_t: Any, y: Any, k: Any, xp: Any = np) -> Any:
        slow, fast, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
        return xp.stack([back - slow, slow - back - fast, fast])

    times = np.logspace(-1, 1 if quick else 4, 20)
    return _stiff(rates, np.array([0.04, 3e7, 1e4]), np.array([1.0, 0, 0]), times, np.array([1.0, 1e-4, 1.0]))


def _mechanism(quick: bool) -> Calls:
    """Reactions A + B -> C + D between random species, with rates over six powers of ten."""
    rng, species = np.random.default_rng(0), 8 if quick else 50
    taken, made = rng.integers(0, species, (2, 2 * species)), rng.integers(0, species, (2, 2 * species))
    change = np.zeros((species, 2 * species))
    for sign, rows in ((-1.0, taken), (1.0, made)):
        for row in rows:
            np.add.at(change, (row, np.arange(2 * species)), sign)

    def rates(_t: Any, y: Any, k: Any, _xp: Any = np) -> Any:
        return change @ (k * y[taken[0]] * y[taken[1]])

    times = np.logspace(-2, 1, 20)
    return _stiff(rates, 10 ** rng.uniform(-3, 3, 2 * species), rng.uniform(0.1, 1, species), times, np.ones(species))


def _poisson(quick: bool) -> Calls:
    import scipy.sparse as sp
    from scipy.sparse.linalg import spsolve

    import yota

    n = 24 if quick else 512
    east = sp.csr_array(sp.diags_array([np.ones(n), -np.ones(n)], offsets=[0, -1], shape=(n + 1, n)))
    gradients = [sp.kron(east, sp.eye_array(n), format="csr"), sp.kron(sp.eye_array(n), east, format="csr")]
    sources, field = np.ones(n * n) / n**2, np.random.default_rng(0).uniform(0.5, 2, (2, n * (n + 1)))
    # Factors of a matrix that was factored before are not computed again.
    scales = itertools.count(1.0, 1e-9)

    def matrix(field: Any) -> Any:
        parts = [each.T @ sp.diags_array(row) @ each for each, row in zip(gradients, field, strict=True)]
        return (parts[0] + parts[1]).tocsc()

    def loss(field: Any) -> Any:
        return np.sum(spsolve(matrix(field), sources) ** 2)

    def of_lineax() -> Callable[[], Any]:
        import lineax

        jax, jnp = _jax()

        def applied(u: Any, conductivity: Any) -> Any:
            flows = (jnp.diff(jnp.pad(u, 1)[:, 1:-1], axis=0), jnp.diff(jnp.pad(u, 1)[1:-1], axis=1))
            flows = [each * k.reshape(each.shape) for each, k in zip(flows, conductivity, strict=True)]
            return -jnp.diff(flows[0], axis=0) - jnp.diff(flows[1], axis=1)

        def loss(conductivity: Any) -> Any:
            operator = lineax.FunctionLinearOperator(
                lambda u: applied(u, conductivity),
                jax.ShapeDtypeStruct((n, n), jnp.float64),
                lineax.positive_semidefinite_tag,
            )
            right = jnp.asarray(sources).reshape(n, n)
            return jnp.sum(lineax.linear_solve(operator, right, lineax.CG(rtol=1e-8, atol=1e-12)).value ** 2)

        found = jax.jit(jax.grad(loss))
        return lambda: jax.block_until_ready(found(jnp.asarray(field * next(scales))))

    made = yota.value_and_grad(loss)
    return {
        "plain": lambda: loss(field * next(scales)),
        "yota": lambda: made(field * next(scales))[1],
        "lineax": _peer("lineax", of_lineax) if quick else "conjugate gradients take over 100 s",
    }


def _bundle(quick: bool) -> Calls:
    """Bundle adjustment as the ADBench suite states it: cameras of 11 numbers, points, weights of observations."""
    from scipy.optimize._numdiff import approx_derivative, group_columns
    from scipy.sparse import csr_array

    import yota

    cameras, points, count = (3, 20, 40) if quick else (49, 7776, 31843)
    rng = np.random.default_rng(0)
    seen = np.stack([rng.integers(0, cameras, count), rng.integers(0, points, count)])
    whole = np.concatenate(
        [
            (rng.normal(size=(cameras, 11)) * 0.1 + [0, 0, 0, 0, 0, -5, 1, 0, 0, 0, 0]).ravel(),
            rng.normal(size=3 * points),
        ]
    )
    measured = rng.normal(size=(count, 2))

    def residuals(x: Any) -> Any:
        camera, place = x[: 11 * cameras].reshape(-1, 11)[seen[0]], x[11 * cameras :].reshape(-1, 3)[seen[1]]
        turn, moved = camera[:, :3], place - camera[:, 3:6]
        angle = np.sqrt(np.sum(turn**2, axis=1))[:, None]
        axis = turn / angle
        cosine, dot = np.cos(angle), np.sum(axis * moved, axis=1)[:, None]
        moved = moved * cosine + np.cross(axis, moved) * np.sin(angle) + axis * dot * (1 - cosine)
        flat = moved[:, :2] / moved[:, 2:]
        square = np.sum(flat**2, axis=1)[:, None]
        flat = flat * (1 + camera[:, 9:10] * square + camera[:, 10:11] * square**2)
        return np.ravel(flat * camera[:, 6:7] + camera[:, 7:9] - measured)

    slopes, compiled = (yota.jacobian(residuals, sparse=True, target=target) for target in ("numpy", "c"))
    pattern = csr_array(slopes(whole) != 0)
    groups = group_columns(pattern)
    return {
        "SciPy's 2-point": lambda: approx_derivative(residuals, whole, "2-point", sparsity=(pattern, groups)).data,
        "yota": lambda: slopes(whole).data,
        "yota, C": lambda: compiled(whole).data,
    }


def _network(quick: bool) -> Calls:
    import yota

    rng, widths = np.random.default_rng(8), (8, 32, 32, 32, 1)
    layers = [(rng.standard_normal(each) / np.sqrt(each[0]), np.zeros(each[1])) for each in itertools.pairwise(widths)]
    points = rng.standard_normal((16 if quick else 512, 8))

    def loss(layers: Any, xp: Any = np) -> Any:
        values = points
        for weights, offsets in layers[:-1]:
            values = xp.tanh(values @ weights + offsets)
        return xp.mean((values @ layers[-1][0] + layers[-1][1]) ** 2)

    def of_jax() -> Callable[[], Any]:
        jax, jnp = _jax()
        made = jax.jit(jax.value_and_grad(lambda layers: loss(layers, jnp)))
        given = [(jnp.asarray(weights), jnp.asarray(offsets)) for weights, offsets in layers]
        return lambda: jax.block_until_ready(made(given))[1][0][0]

    _, tape = yota.trace(loss, layers)
    plain, made = yota.compile(tape, target="c"), yota.value_and_grad(loss, target="c")
    return {"plain": lambda: plain(layers), "yota": lambda: made(layers)[1][0, 0], "jax": _peer("jax", of_jax)}


def _kepler(quick: bool) -> Calls:
    import yota
    from yota.run.machine import native

    rng, count = np.random.default_rng(0), 1_000 if quick else 1_000_000
    given = rng.uniform(-3, 3, count), rng.uniform(0, 0.9, count)
    anomaly = yota.diffrule(
        "@implicit\ndef kepler(M: Real(-pi, pi), e: Real(0, 1)) -> E:\n"
        "    E = M + e * sin(M)\n    0 == E - e * sin(E) - M\n"
    )
    made = yota.value_and_grad(lambda M, e: np.sum(anomaly(M, e)), wrt=(0, 1), target="c")
    hand = native.build(Path(__file__).with_name("hand").joinpath("kepler.c").read_text())
    slopes = np.empty(count), np.empty(count)

    def plain() -> Any:
        hand.kepler(*given, *slopes)
        return np.concatenate(slopes)

    def of_optimistix() -> Callable[[], Any]:
        import optimistix

        jax, jnp = _jax()

        def anomaly(M: Any, e: Any) -> Any:
            solver = optimistix.Newton(rtol=1e-12, atol=1e-12)
            return optimistix.root_find(lambda E, _: E - e * jnp.sin(E) - M, solver, M + e * jnp.sin(M)).value

        found = jax.jit(jax.grad(lambda M, e: jnp.sum(jax.vmap(anomaly)(M, e)), argnums=(0, 1)))
        return lambda: np.concatenate(jax.block_until_ready(found(*map(jnp.asarray, given))))

    return {
        "C by hand": plain,
        "yota": lambda: np.concatenate(made(*given)[1]),
        "optimistix": _peer("optimistix", of_optimistix),
    }


CASES = (
    Case("Lotka-Volterra, RK45, 200 observations", "3 times plain, ahead of diffrax, 20 of autograd", _lotka_volterra),
    Case("Robertson, BDF", "4 times the solve with generated Jacobian", _robertson),
    Case("50 species, BDF", "4 times the solve with generated Jacobian", _mechanism),
    Case("Poisson 512 x 512, spsolve", "1.3 solves and 10 %", _poisson),
    Case("bundle adjustment, sparse Jacobian", "20 times ahead of 2-point differences", _bundle),
    Case("small tanh network, C", "2.0 times the function, ahead of JAX", _network),
    Case("Kepler's equation, a million, C", "1.5 times C by hand", _kepler),
)


def measure_solvers(cases: tuple[Case, ...] = CASES, *, quick: bool = False) -> dict[str, dict[str, Any]]:
    """Median CPU seconds of each call; differences of gradients from yota's; why others are missing.

    quick: small, and only the first call of each, which compiles.
    """
    found = {}
    for case in cases:
        calls = case.make(quick)
        run = {name: call for name, call in calls.items() if not isinstance(call, str)}
        slopes = {}
        times: dict[str, list[float]] = {name: [] for name in run}
        for name, call in list(run.items()):
            started = time.process_time()
            try:
                slopes[name] = call()
                if quick:
                    times[name].append(time.process_time() - started)
            except Exception as failure:  # noqa: BLE001  a peer that fails must not lose the others' numbers
                calls[name] = f"{type(failure).__name__}: {str(failure).splitlines()[0][:60]}"
                del run[name], times[name]
        for _ in range(0 if quick else _ROUNDS):
            for name, call in run.items():
                gc.collect()
                started = time.process_time()
                call()
                times[name].append(time.process_time() - started)
        found[case.name] = {
            "bar": case.bar,
            "seconds": {name: statistics.median(each) for name, each in times.items()},
            "apart": {name: _apart(each, slopes["yota"]) for name, each in slopes.items() if np.size(each) > 1},
            "missing": {name: call for name, call in calls.items() if isinstance(call, str)},
        }
    return found


def _apart(one: Any, other: Any) -> float:
    one, other = np.ravel(one), np.ravel(other)
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def show_solvers(found: dict[str, dict[str, Any]]) -> None:
    """Print the times, as multiples of the first."""
    for name, each in found.items():
        base = next(iter(each["seconds"].values()))
        print(f"{name} (bar: {each['bar']})")
        for who, seconds in each["seconds"].items():
            apart = f", {each['apart'][who]:.0e} from yota's" if each["apart"].get(who) else ""
            print(f"    {who:20s} {1e3 * seconds:12.3f} ms {seconds / base:9.2f}{apart}")
        for who, reason in each["missing"].items():
            print(f"    {who:20s} skipped: {reason}")
