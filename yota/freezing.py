"""Compiled functions whose generated code goes into pickles: `yota.freeze`."""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from yota.compilation.compiled import Compiled
from yota.compilation.kept import adopt, state_of_yota, why_not_kept
from yota.derivatives.differentiated import with_receiver
from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.runtime.store import digest_of

__all__ = ["Frozen", "freeze", "pickled"]


def freeze(f: Callable[..., Any]) -> Frozen:
    """A compiled function, with the code that it has by now, for other processes.

    A pickle of it holds what was traced, factored and generated. A process of the same version of Python, NumPy and
    yota, on a processor of the same kind, goes on from there; for C the compiler runs once on each machine. Any other
    process compiles anew, and so does every process if the function or what it reads from outside has changed. With
    cloudpickle installed, lambdas and functions inside of functions go along by value.

    A pickle is code: load none that you would not run. What it brings is used only where this process finds the same
    function with the same surroundings; see the page on many machines.

    Parameters
    ----------
    f
        What `value_and_grad`, `gradient`, `jacobian`, `hessian`, `hvp` or `batch` gave, after a call for each kind of
        arguments that other processes need, or with sizes that have names (``args=``).

    Returns
    -------
    Frozen
        Does what ``f`` does.

    Raises
    ------
    ArgumentError
        If nothing is compiled that could go along; the message says why.

    Examples
    --------
    >>> import yota
    >>> freeze(yota.value_and_grad(lambda x: x**2))
    Traceback (most recent call last):
        ...
    yota.errors.ArgumentError: <yota.value_and_grad of <lambda>, target numpy, 0 compiled> cannot be frozen: nothing is
    compiled yet; call it once with such arguments as other processes will have, then freeze it
    """
    if not hasattr(f, "journal"):
        raise ArgumentError(
            f"freeze takes what yota compiled, such as yota.value_and_grad(f), and got {name_of(f)}, which is none"
        )
    found = Frozen(f)
    if not found.records():
        raise ArgumentError(f"{f!r} cannot be frozen: {_why(f)}")
    return found


class Frozen(Compiled):
    """A compiled function whose pickles hold its generated code; see `freeze`.

    Parameters
    ----------
    function
        What it calls.
    brought
        Records that it came with.
    """

    def __init__(self, function: Any, brought: Iterable[tuple[str, str]] = ()) -> None:
        name = function.journal.name
        super().__init__((freeze, (function,), {}), function, "", function, journal=function.journal)
        # The journal is that of the function.
        self.journal.name = name
        self._brought = dict(brought)

    def records(self) -> dict[str, str]:
        """What a process needs that is to go on from here, by key."""
        return {**self._brought, **dict(_records(self.recipe[1][0]))}

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles anew."""
        self._brought.clear()
        self.recipe[1][0].clear()

    def __reduce__(self) -> tuple[Any, ...]:
        records = sorted(self.records().items())
        return _thawed, (pickled(self.recipe[1][0]), state_of_yota(), _digest(records), records)


def _thawed(function: bytes, version: str, digest: str, records: list[tuple[str, str]]) -> Frozen:
    """What a pickle is read as; its records count if they are whole, and this version would have made them."""
    if version != state_of_yota() or digest != _digest(records):
        records = []
    # What compiles as soon as it is made looks for them.
    adopt(records)
    return Frozen(pickle.loads(function), records)


def _digest(records: Iterable[tuple[str, str]]) -> str:
    return digest_of(part for record in records for part in record)


def pickled(function: Any) -> bytes:
    """The function by reference where it can be imported; by value, with cloudpickle, where it cannot."""
    if importlib.util.find_spec("cloudpickle") is None:
        return pickle.dumps(function)
    import cloudpickle

    return bytes(cloudpickle.dumps(function))


def _records(function: Any) -> Iterator[tuple[str, str]]:
    yield from function.journal.records.items()
    for part in function.journal.parts:
        yield from _records(part)


def _why(function: Any) -> str:
    if not function.info().compilations:
        return "nothing is compiled yet; call it once with such arguments as other processes will have, then freeze it"
    reason = why_not_kept(with_receiver(function.recipe[1][0])[0])
    more = (
        "what it compiled holds more than generated code, or large arrays. Pickle it as it is; each process compiles it"
    )
    return reason or more
