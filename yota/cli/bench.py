"""``yota bench``: how long a function takes, and its value with gradient, in yota and in the peers installed."""

from __future__ import annotations

import time
import types
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from yota.cli.generate import Arguments, Function, Strict, Wrt
from yota.cli.loading import UsageError, function_at, given
from yota.cli.terminal import output, table

__all__ = ["HELP", "bench"]

HELP = """
Time a function, and its value with gradient, here and in the libraries installed that can run it.

    yota bench examples/polynomial.py:polynomial --arg "x=float64[8]"

The ratio is that of value with gradient to the function in plain NumPy.
"""

_PEERS = ("autograd",)
_AGREEMENT = 1e-6


def bench(
    function: Function,
    arg: Arguments = [],  # noqa: B006
    wrt: Wrt = [],  # noqa: B006
    strict: Strict = False,
    seconds: Annotated[float, typer.Option("--seconds", help="Time to spend on each row.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, times in seconds.")] = False,
) -> int:
    """See `HELP`."""
    import numpy as np

    from yota.api import value_and_grad
    from yota.generation.subject import call_of, subject_of

    f = function_at(function)
    call = call_of(f, given(arg))
    if call.dimensions():
        raise UsageError(f"give the extent {call.dimensions()[0]} as a number; times are for one size")
    subject = subject_of(call, tuple(wrt) or None)
    args = subject.arguments.values
    positions = tuple(dict.fromkeys(subject.arguments.leaves[leaf].argument for leaf in subject.layout.wanted))
    start = time.perf_counter()
    both = value_and_grad(subject.function, positions[0] if len(positions) == 1 else positions, strict=strict)
    gradients = both(*args)[1]
    reference = gradients if len(positions) > 1 else (gradients,)
    first = time.perf_counter() - start
    plain = _best(lambda: subject.function(*args), seconds)
    rows: list[dict[str, Any]] = [{"what": "the function, NumPy", "seconds": plain}]
    rows.append({"what": "value and gradient, yota", "seconds": _best(lambda: both(*args), seconds), "first": first})
    for name in _PEERS:
        peer = _peer(name, subject.function, positions, args)
        if peer is None:
            continue
        found = peer()[1]
        if all(np.allclose(a, b, rtol=_AGREEMENT, atol=_AGREEMENT) for a, b in zip(found, reference, strict=True)):
            rows.append({"what": f"value and gradient, {name}", "seconds": _best(peer, seconds)})
    for row in rows:
        row["ratio"] = row["seconds"] / plain
    if as_json:
        output(rows)
    else:
        cells = [[row["what"], _shown(row["seconds"]), f"{row['ratio']:.2f}", _shown(row.get("first"))] for row in rows]
        table(["", "one call", "ratio", "first call"], cells, right=["one call", "ratio", "first call"])
    return 0


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _best(function: Callable[[], Any], seconds: float) -> float:
    """Shortest time of one call, from repeated runs of as many calls as take a millisecond or more."""
    clock = time.perf_counter
    count, best, stop = 1, float("inf"), clock() + seconds
    while True:
        start = clock()
        for _ in range(count):
            function()
        spent = clock() - start
        if spent < 1e-3 and count < 1_000_000:
            count *= 4
            continue
        best = min(best, spent / count)
        if clock() > stop:
            return best


def _peer(name: str, f: Callable[..., Any], positions: tuple[int, ...], args: Any) -> Callable[[], Any] | None:
    """Value and gradient by another library, if it is installed and can run the function."""
    code = getattr(f, "__code__", None)
    if code is None or find_spec(name) is None:
        return None
    try:
        library, numpy = import_module(name), import_module(f"{name}.numpy")
        import numpy as np

        names = {key: numpy if value is np else value for key, value in getattr(f, "__globals__", {}).items()}
        copy = types.FunctionType(
            code, names, code.co_name, getattr(f, "__defaults__", None), getattr(f, "__closure__", None)
        )
        both = library.value_and_grad(copy, positions)
        both(*args)
    except Exception:  # noqa: BLE001
        # Whatever another library cannot do with the function, it has no time to show.
        return None
    return lambda: both(*args)
