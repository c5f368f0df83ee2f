"""``yota bench``: times a function, and its value with gradient, in yota and other installed libraries."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from yota.tools.cli.generate_command import Arguments, Function, Rules, Strict, Wrt
from yota.tools.cli.terminal import output, remark, steps, table
from yota.tools.cli.user_function import UsageError, function_at, given, load_rule_files

Thunk = Callable[[], tuple[Any, Sequence[Any]]]
"""A function of the value and a sequence of gradients."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library.

    prepare: returns the computation for a function, the positions to differentiate by, and the arguments. It may raise
        any exception for code that the library does not support.
    """

    name: str
    prepare: Callable[[Callable[..., Any], tuple[int, ...], Sequence[Any]], Thunk]

    @property
    def installed(self) -> bool:
        """Whether it is installed."""
        return find_spec(self.name) is not None


def _with_names(f: Callable[..., Any], library: Any) -> Callable[..., Any]:
    """``f`` with the global name of NumPy bound to ``library``."""
    import numpy as np

    code = getattr(f, "__code__", None)
    if code is None:
        raise TypeError("its source is not available")
    names = {key: library if value is np else value for key, value in getattr(f, "__globals__", {}).items()}
    closure = tuple(
        types.CellType(library) if cell.cell_contents is np else cell for cell in getattr(f, "__closure__", None) or ()
    )
    return types.FunctionType(code, names, code.co_name, getattr(f, "__defaults__", None), closure)


def _autograd(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    library = import_module("autograd")
    both = library.value_and_grad(_with_names(f, import_module("autograd.numpy")), positions)
    return lambda: both(*args)


def _jax(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    library = import_module("jax")
    library.config.update("jax_enable_x64", True)
    static = tuple(place for place, value in enumerate(args) if isinstance(value, (bool, int, str, type(None))))
    differentiated = library.value_and_grad(_with_names(f, import_module("jax.numpy")), positions)
    both = library.jit(differentiated, static_argnums=static)
    # Transfer the arguments once, so that the time is that of the computation.
    placed = [
        value if place in static else library.tree_util.tree_map(library.numpy.asarray, value)
        for place, value in enumerate(args)
    ]
    return lambda: library.block_until_ready(both(*placed))


def _torch(f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any]) -> Thunk:
    import numpy as np

    library = import_module("torch")
    # PyTorch runs NumPy code on tensors only in compiled functions.
    forward = library.compile(library.compiler.wrap_numpy(f), backend="aot_eager")
    leaves = [
        library.tensor(value, requires_grad=place in positions)
        if isinstance(value, (np.ndarray, np.floating, float))
        else value
        for place, value in enumerate(args)
    ]
    wanted = [leaves[place] for place in positions]

    def both() -> tuple[Any, Sequence[Any]]:
        value = forward(*leaves)
        return value.detach().numpy(), [each.numpy() for each in library.autograd.grad(value, wanted)]

    return both


PEERS = (Peer("autograd", _autograd), Peer("jax", _jax), Peer("torch", _torch))


_AGREEMENT = 1e-6
_ROUNDS = 10


@dataclass(slots=True)
class _Row:
    """One library or function to time."""

    what: str
    seconds: float | None = None
    ratio: float | None = None
    first: float | None = None
    note: str = ""


def bench(
    function: Function,
    arg: Arguments = [],  # noqa: B006
    wrt: Wrt = [],  # noqa: B006
    strict: Strict = False,
    rules: Rules = [],  # noqa: B006
    seconds: Annotated[float, typer.Option("--seconds", min=0.0, max=3600.0, help="Time to spend on each row.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, times in seconds.")] = False,
) -> int:
    """Time a function, and its value with gradient, in yota and in other installed libraries.

    The ratio compares value with gradient to the plain NumPy function. All rows are timed in turn several times, and
    the shortest time of each counts. autograd, jax and torch are included if they are installed and their gradients
    agree with yota's. Otherwise a note gives the reason.

        yota bench examples/polynomial.py:polynomial --arg "x=float64[8]"
        yota bench pkg.energy:potential --arg "x=float64[500,3]" --seconds 2 --json
    """
    from yota.package.subject import call_of, subject_of

    load_rule_files(rules)
    f = function_at(function)
    call = call_of(f, given(arg))
    if call.dimensions():
        raise UsageError(f"give the extent {call.dimensions()[0]} as a number; times are for one size")
    subject = subject_of(call, tuple(wrt) or None)
    args = subject.arguments.values
    wanted = subject.layout.wanted
    positions = tuple(dict.fromkeys(subject.arguments.leaves[leaf].argument for leaf in wanted))
    rows, calls = _contenders(subject.function, positions, args, strict)
    _time(rows, calls, seconds)
    plain = rows[0].seconds
    for row in rows:
        row.ratio = row.seconds / plain if row.seconds is not None and plain else None
    if as_json:
        output([{key: value for key, value in asdict(row).items() if value not in (None, "")} for row in rows])
        return 0
    columns = ["", "one call", "ratio", "first call"]
    shown = [row for row in rows if row.seconds is not None]
    cells = [[row.what, _shown(row.seconds), f"{row.ratio:.3g}", _shown(row.first)] for row in shown]
    table(columns, cells, right=columns[1:])
    for row in rows:
        if row.note:
            remark(f"{row.what}: {row.note}")
    return 0


def _contenders(
    f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any], strict: bool
) -> tuple[list[_Row], list[Callable[[], Any] | None]]:
    """Rows with the calls to time: the function, then yota, then other libraries."""
    from yota.api.gradients import value_and_grad
    from yota.errors import YotaError

    wrt = positions[0] if len(positions) == 1 else positions
    rows = [_Row("the function, NumPy")]
    calls: list[Callable[[], Any] | None] = [partial(f, *args)]
    reference: Any = None
    for target in ("numpy", "c"):
        row = _Row(f"value and gradient, yota{'' if target == 'numpy' else f' ({target})'}")
        both = value_and_grad(f, wrt, target=target, strict=strict)
        start = time.perf_counter()
        try:
            found = both(*args)[1]
        except YotaError as fault:
            if target == "numpy":
                raise
            rows.append(_Row(row.what, note=str(fault).splitlines()[0]))
            calls.append(None)
            continue
        row.first = time.perf_counter() - start
        reference = found if reference is None else reference
        rows.append(row)
        calls.append(partial(both, *args))
    expected = reference if len(positions) > 1 else (reference,)
    for peer in steps([peer for peer in PEERS if peer.installed], "preparing"):
        row, thunk = _peer(peer, f, positions, args, expected)
        rows.append(row)
        calls.append(thunk)
    return rows, calls


def _peer(
    peer: Any, f: Callable[..., Any], positions: tuple[int, ...], args: Sequence[Any], expected: Sequence[Any]
) -> tuple[_Row, Callable[[], Any] | None]:
    import numpy as np

    row = _Row(f"value and gradient, {peer.name}")
    start = time.perf_counter()
    try:
        thunk = peer.prepare(f, positions, args)
        found = thunk()[1]
        row.first = time.perf_counter() - start
        pairs = list(zip(found, expected, strict=True))
        agree = all(np.allclose(np.asarray(a), b, rtol=_AGREEMENT, atol=_AGREEMENT) for a, b in pairs)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as fault:  # noqa: BLE001
        # NumPy code may fail in another library with any exception.
        text = str(fault).strip().splitlines()
        return _Row(row.what, note=f"cannot run it ({type(fault).__name__}: {text[0][:100] if text else ''})"), None
    if not agree:
        return _Row(row.what, note="its gradient differs, so it is not timed"), None
    return row, thunk


def _time(rows: Sequence[_Row], calls: Sequence[Callable[[], Any] | None], seconds: float) -> None:
    """Shortest time of one call of each; the calls alternate, so that a slow moment affects all."""
    taking = [(row, call) for row, call in zip(rows, calls, strict=True) if call is not None]
    counts = [_count(call) for _, call in taking]
    clock = time.perf_counter
    for _ in steps(range(_ROUNDS), "timing"):
        for (row, call), count in zip(taking, counts, strict=True):
            stop = clock() + seconds / _ROUNDS
            while True:
                start = clock()
                for _ in range(count):
                    call()
                now = clock()
                row.seconds = min(row.seconds or float("inf"), (now - start) / count)
                if now > stop:
                    break


def _count(call: Callable[[], Any]) -> int:
    """Number of calls that take at least a millisecond."""
    count = 1
    while count < 1_000_000:
        start = time.perf_counter()
        for _ in range(count):
            call()
        if time.perf_counter() - start > 1e-3:
            break
        count *= 4
    return count


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
