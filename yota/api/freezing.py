"""`yota.freeze`: compiled functions whose pickles contain their generated code."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import pickle
from collections.abc import Callable, Iterable
from typing import Any

from yota.errors import ArgumentError
from yota.ir.callables import name_of
from yota.run.compiled import Compiled
from yota.run.derivatives.differentiated import with_receiver
from yota.run.machine.store import digest_of
from yota.run.persistent import adopt, state_of_yota, why_not_kept

__all__ = ["Frozen", "freeze", "pickled"]


def freeze(f: Callable[..., Any]) -> Frozen:
    """Return a compiled function whose pickle contains the code compiled so far.

    The pickle contains the tapes and the generated code. A process uses them if it has the same versions of Python,
    NumPy and yota, and the same processor type; C code is compiled once on each machine. Otherwise it compiles the
    function. It also does so if the function, or data that the function reads, has changed. With cloudpickle
    installed, lambdas and nested functions are pickled by value.

    Loading a pickle runs code: load only pickles that you trust. A process uses the records only for the same
    function with the same captured data; see the page on distributed data.

    Parameters
    ----------
    f
        A result of `value_and_grad`, `gradient`, `jacobian`, `hessian`, `hvp` or `batch`. Call it first with each
        combination of argument types that other processes need, or create it with named sizes (``args=``).

    Returns
    -------
    Frozen
        Behaves like ``f``.

    Raises
    ------
    ArgumentError
        If there is no compiled code to pickle; the message gives the reason.

    Examples
    --------
    >>> import yota
    >>> freeze(yota.value_and_grad(lambda x: x**2))
    Traceback (most recent call last):
        ...
    yota.errors.ArgumentError: <yota.value_and_grad of <lambda>, target numpy, 0 compiled> cannot be frozen: nothing is
    compiled yet; call it with the argument types of the other processes, then freeze it
    """
    if not hasattr(f, "journal"):
        raise ArgumentError(f"freeze needs a compiled function, such as yota.value_and_grad(f), and got {name_of(f)}")
    found = Frozen(f)
    if not found.records():
        raise ArgumentError(f"{f!r} cannot be frozen: {_why(f)}")
    return found


class Frozen(Compiled):
    """A compiled function whose pickle contains its generated code; see `freeze`.

    brought: records that were loaded from the pickle.
    """

    def __init__(self, function: Any, brought: Iterable[tuple[str, str]] = ()) -> None:
        name = function.journal.name
        super().__init__((freeze, (function,), {}), function, "", function, journal=function.journal)
        # The journal is that of the function.
        self.journal.name = name
        self._brought = dict(brought)

    def records(self) -> dict[str, str]:
        """Records of all compiled code, by key."""
        made = [each.records.items() for each in self.journal.all()]
        return {**self._brought, **dict(itertools.chain(*made))}

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles again."""
        self._brought.clear()
        self.recipe[1][0].clear()

    def __deepcopy__(self, memo: dict[int, Any]) -> Frozen:
        function = self.recipe[1][0]
        copied = copy.deepcopy(function, memo)
        return self if copied is function else Frozen(copied, self.records().items())

    def __reduce__(self) -> tuple[Any, ...]:
        records = sorted(self.records().items())
        return _thawed, (pickled(self.recipe[1][0]), state_of_yota(), _digest(records), records)


def _thawed(function: bytes, version: str, digest: str, records: list[tuple[str, str]]) -> Frozen:
    """Unpickle a frozen function; the records are used only if they are intact and this version would produce them."""
    if version != state_of_yota() or digest != _digest(records):
        records = []
    # Some functions compile during construction and look up the records then.
    adopt(records)
    return Frozen(pickle.loads(function), records)


def _digest(records: Iterable[tuple[str, str]]) -> str:
    return digest_of(part for record in records for part in record)


def pickled(function: Any) -> bytes:
    """Pickle the function by reference if it can be imported, otherwise by value with cloudpickle."""
    if importlib.util.find_spec("cloudpickle") is None:
        return pickle.dumps(function)
    import cloudpickle

    return bytes(cloudpickle.dumps(function))


def _why(function: Any) -> str:
    if not function.info().compilations:
        return "nothing is compiled yet; call it with the argument types of the other processes, then freeze it"
    unsaved = (each.unsaved for each in function.journal.all() if each.unsaved)
    reason = why_not_kept(with_receiver(function.recipe[1][0])[0]) or next(unsaved, "it is not kept")
    return f"{reason}. Pickle it as it is; each process compiles it"
