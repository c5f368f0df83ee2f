"""All workloads, by name."""

from benchmarks.workload import Workload
from benchmarks.workloads import elementwise, layers, mixture, particles, polynomials, systems

__all__ = ["WORKLOADS"]

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for theme in (polynomials, systems, elementwise, particles, mixture, layers)
    for workload in theme.WORKLOADS
}
