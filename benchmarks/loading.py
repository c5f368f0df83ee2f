"""In a process of its own: ``python -m benchmarks.loading shipped|all|FILE`` prints the seconds of loading rules."""

from __future__ import annotations

import sys
import time

__all__ = ["COUNT", "main", "text"]

COUNT = 300


_THREE = """
@elementwise
def softsign_{0}(x: Real) -> y:
    assert x != 0
    y = x / (1 + {0} + absolute(x))

@elementwise
def bell_{0}(x: Real, s: Real(0, oo)) -> y:
    y = exp(-x * x / (2 * s * s))
    d[y, x] = -x / (s * s) * y
    d[y, s] = x * x / s**3 * y

@tensor("loading.product_{0}")
def product_{0}(a: Array[m, n], x: Array[n]) -> y:
    d[a] = matmul(expand_dims(d[y], 1), expand_dims(x, 0))
    d[x] = matmul(adjoint(a), d[y])
"""


def text() -> str:
    """A file of 300 rules of a user's: primals with derived and with written partials, and adjoints."""
    return "# yota rules 1\n" + "".join(_THREE.format(number) for number in range(COUNT // 3))


def main(what: str) -> float:
    """Seconds, without the import of yota."""
    import yota
    from yota.rules.registry import Registry, registry
    from yota.run.machine import store  # noqa: F401

    load = yota.load_rules
    if what not in ("shipped", "all"):
        registry()
        start = time.perf_counter()
        load(what)
        return time.perf_counter() - start
    start = time.perf_counter()
    known = Registry.shipped()
    if what == "all":
        for name in known.names():
            known.rules(name)
    return time.perf_counter() - start


if __name__ == "__main__":
    print(main(sys.argv[1]))
