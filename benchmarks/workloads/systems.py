"""Jacobians of polynomial systems at one point, as path trackers evaluate them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.systems import cyclic, katsura
from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]


def system_workload(name: str, title: str, system: Callable[[Any], list[Any]], size: int) -> Workload:
    """A system in ``size`` variables."""

    def write(namespace: Any) -> Any:
        def equations(x: Any) -> Any:
            return namespace.stack(system(x))

        return equations

    def in_casadi() -> Any:
        import casadi

        x = casadi.SX.sym("x", size)
        value = casadi.vertcat(*system([x[i] for i in range(size)]))
        function = casadi.Function(name, [x], [value, casadi.jacobian(value, x)])

        def value_and_jacobian(x: np.ndarray) -> tuple[Any, Any]:
            value, matrix = function(x)
            return np.asarray(value).ravel(), matrix.toarray()

        return value_and_jacobian

    def point(_quick: bool) -> tuple[Any, ...]:
        return (np.random.default_rng(size).standard_normal(size),)

    return Workload(name, title, write, point, jacobian=True, single=True, specific={"casadi": in_casadi})


WORKLOADS = (
    system_workload("katsura_10", "katsura-10, value and Jacobian, one point", katsura(10), 11),
    system_workload("cyclic_7", "cyclic-7, value and Jacobian, one point", cyclic(7), 7),
)
