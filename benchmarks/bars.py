"""The speeds that yota promises, as data, and whether a run kept them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["judge"]

Results = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise: ``measure(results)`` is at most ``bound``; None where it was not measured."""

    name: str
    measure: Callable[[Results], float | None]
    bound: float
    at_least: bool = False

    def kept(self, measured: float) -> bool:
        return measured >= self.bound if self.at_least else measured <= self.bound


def judge(results: Results) -> list[dict[str, Any]]:
    """Every promise that this run can speak about."""
    judged = []
    for bar in bars(results):
        measured = bar.measure(results)
        if measured is not None:
            judged.append(
                {
                    "bar": bar.name,
                    "measured": measured,
                    "bound": bar.bound,
                    "at_least": bar.at_least,
                    "kept": bar.kept(measured),
                }
            )
    return judged


def bars(results: Results) -> list[Bar]:
    """All promises, those about each workload included."""
    found = []
    for name, workload in results["workloads"].items():
        if not workload["single"]:
            found.append(Bar(f"{name}: yota / plain", ratio(name, "yota", "plain"), 2.5))
            found.append(Bar(f"{name}: autograd / yota", ratio(name, "autograd", "yota"), 2.0, at_least=True))
        found.append(Bar(f"{name}: first gradient, yota / jax", ratio(name, "yota", "jax", "first"), 1.0))
        found.append(Bar(f"{name}: first gradient, yota c / jax", ratio(name, "yota c", "jax", "first"), 2.0))
    return [
        *found,
        *compiled(),
        Bar("polynomial: autograd / yota", ratio("polynomial", "autograd", "yota"), 200.0, at_least=True),
        Bar("polynomial: yota / hand", ratio("polynomial", "yota", "hand"), 2.0),
        Bar("polynomial: jax / yota", ratio("polynomial", "jax", "yota"), 1.0, at_least=True),
        *(
            Bar(f"{name}: {peer} / yota c", ratio(name, peer, "yota c"), 20.0, at_least=True)
            for name in ("katsura_10", "cyclic_7")
            for peer in ("casadi", "jax")
        ),
        Bar("call overhead, microseconds", lambda results: overhead(results, "call", "overhead", 1e6), 1.0),
        Bar("10,000 ops / 1,000 ops", lambda results: overhead(results, "growth", "ratio"), 12.0),
        Bar("import yota / import numpy", lambda results: overhead(results, "imports", "ratio of yota"), 1.5),
        Bar("shipped rules, seconds", lambda results: overhead(results, "rules", "shipped"), 0.05),
        Bar("300 rules of a user's, first time, seconds", lambda results: overhead(results, "rules", "first"), 0.3),
        Bar("300 rules of a user's, proved before, seconds", lambda results: overhead(results, "rules", "again"), 0.05),
        Bar("from yota import grad / import numpy", lambda results: overhead(results, "imports", "ratio"), 1.5),
    ]


def compiled() -> list[Bar]:
    """Promises about `target="c"`."""
    found = [
        (workload, peer, 1.0)
        for workload in ("chain", "rosenbrock", "lennard_jones", "lennard_jones_pairs", "mixture")
        for peer in ("jax", "torch")
    ]
    found += [("chain", "plain", 3.0), ("polynomial", "jax", 50.0), ("polynomial", "casadi", 100.0)]
    found += [("polynomial_1e6", "jax", 10.0)]
    return [
        Bar(f"{workload}: {peer} / yota c", ratio(workload, peer, "yota c"), bound, at_least=True)
        for workload, peer, bound in found
    ]


def ratio(workload: str, above: str, below: str, what: str = "median") -> Callable[[Results], float | None]:
    """Time of one contender over time of another."""

    def measure(results: Results) -> float | None:
        contenders = results["workloads"].get(workload, {}).get("contenders", {})
        if above not in contenders or below not in contenders:
            return None
        return float(contenders[above][what] / contenders[below][what])

    return measure


def overhead(results: Results, part: str, what: str, factor: float = 1.0) -> float | None:
    """One of the overheads."""
    found = results.get("overheads", {}).get(part)
    return None if found is None else factor * float(found[what])
