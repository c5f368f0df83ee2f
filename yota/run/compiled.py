"""Base class of compiled functions, and the records of their compilations."""

from __future__ import annotations

import datetime as dt
import re
import sys
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from yota.ir.callables import Derived, Recipe, name_of
from yota.run.arguments import Arguments
from yota.run.machine.cache import Table
from yota.run.progress import shown, uncollected
from yota.run.specialise import Target, needed

if TYPE_CHECKING:
    from yota.ir.tape import Tape
    from yota.run.machine.background import Later

CHANGED = "what the function reads from outside has changed"
CONTENT = "the content of an array that the code relies on has changed"
OTHER_WAY = "a branch went another way"
CLEARED = "clear() was called"
_IN_BACKGROUND = "compiled in the background, calls go on with it"
KEPT = "kept in the private cache, and read from there"
BROUGHT = "came from another process with the frozen function"
_FIRST = "first call with such arguments"
_MOST_KEPT = 100
_SIZED = ("value_and_grad ", "gradient ")
"""What takes named sizes."""
_SHAPES = 3
"""Shapes from which on named sizes are advised."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation.

    name: name of the compiled function, such as ``value_and_grad of rosen``.
    arguments: types of its arguments.
    target: target of the code.
    why: reason of the compilation.
    seconds: wall time, tracing included.
    when: time of the compilation.
    """

    name: str
    arguments: str
    target: str
    why: str
    seconds: float
    when: dt.datetime = field(default_factory=lambda: dt.datetime.now().astimezone())

    def __str__(self) -> str:
        what = f"{self.name} for ({self.arguments}), target {self.target}"
        return f"{what}, at {self.when:%H:%M:%S} in {self.seconds:.3f} s: {self.why}"


@dataclass(frozen=True, slots=True)
class Information:
    """Result of `Compiled.info`; it prints one line for each compilation.

    title: name and target of the function, and the number of compiled forms.
    compilations: the last hundred compilations, including those of the functions that it calls.
    """

    title: str
    compilations: tuple[Compilation, ...]
    calls: int = 0

    @property
    def specs(self) -> dict[str, str]:
        """Specs for ``args=`` with which one code serves the shapes that were compiled; empty for fewer than three."""
        return _specs([each.arguments for each in self.compilations]) if self.title.startswith(_SIZED) else {}

    def __str__(self) -> str:
        advice = [f"one compilation serves all of these sizes with args={self.specs!r}"] if self.specs else []
        return "\n".join([f"{self.title}, {self.calls} calls", *map(str, self.compilations), *advice])


class Journal:
    """The compilations of one function.

    live: number of compilations since the compiled code was last dropped.
    latest: tape and source of the last compilation.
    records: records by key from which another process loads the same code; see `yota.run.persistent`.
    unsaved: why the last compiled code has no record; empty if it has one, or could have one.
    parts: functions that it calls, which have journals of their own.
    awaited: functions that background compilation will replace by C code.
    """

    __slots__ = ("_again", "awaited", "entries", "latest", "live", "name", "parts", "records", "target", "unsaved")

    def __init__(self, name: str, target: str) -> None:
        self.name, self.target, self.live, self._again, self.unsaved = name, target, 0, "", ""
        self.awaited: set[Later] = set()
        self.entries: deque[Compilation] = deque(maxlen=_MOST_KEPT)
        self.latest: tuple[Tape | None, str] = None, ""
        self.records = Table(_MOST_KEPT)
        self.parts: list[Compiled] = []

    def all(self) -> Iterator[Journal]:
        """The journals of a function and of all functions that it calls, to any depth."""
        yield self
        for part in self.parts:
            yield from part.journal.all()

    def forget(self, why: str) -> None:
        """Note that all compiled code was dropped."""
        self.live, self.latest, self._again, self.unsaved = 0, (None, ""), why, ""
        self.records.clear()

    @contextmanager
    def compiling(self, arguments: Arguments, target: str, why: str = "") -> Iterator[Callable[..., None]]:
        """Record a compilation in this context; the context value is a function that takes tape and source."""
        start = time.perf_counter()

        def made(tape: Tape, source: str, how: str = "") -> None:
            kinds = _kinds(arguments)
            known = any(entry.arguments == kinds for entry in self.entries)
            reason = how or why or (self._again if known and self._again else _FIRST)
            self._note(Compilation(self.name, kinds, target, reason, time.perf_counter() - start))
            self.live += 1
            self.latest = tape, source

        with shown(self.name):
            yield made

    def going_on(
        self,
        arguments: Arguments,
        target: Target,
        first: Callable[..., Any],
        make: Callable[[Target], tuple[Callable[..., Any], Tape, str] | None],
    ) -> Callable[..., Any]:
        """``first``, which for the target "auto" is later replaced by the result of ``make``.

        ``make`` returns the function with its tape and source, or None if the function is no longer called.
        """
        if target.name != "auto":
            return first
        from yota.run.machine.background import Later

        kinds = _kinds(arguments)

        def better() -> Callable[..., Any]:
            start, name, why = time.perf_counter(), "c", _IN_BACKGROUND
            try:
                needed()
                # The collector would stop all threads to look through what was imported for C.
                with uncollected():
                    made = make(replace(target, name=name))
                if made is None:
                    why = ""
                    return first
                call, tape, source = made
                if self.live:
                    self.latest = tape, source
                return call
            except Exception as fault:
                name, why = "numpy", f"it stays, for C cannot be had: {str(fault) or type(fault).__name__}"
                raise
            finally:
                if why:
                    self._note(Compilation(self.name, kinds, name, why, time.perf_counter() - start))
                # Last, so that nobody finds neither of both.
                self.awaited.discard(later)

        later = Later(first, better)
        self.awaited.add(later)
        return later

    def _note(self, entry: Compilation) -> None:
        self.entries.append(entry)
        # Where nobody has imported it, nobody listens.
        if (logging := sys.modules.get("logging")) is not None:
            logging.getLogger("yota").info("compiled %s", entry)


def titled(function: Callable[..., Any]) -> str:
    """How listings call a function: a derivative says what it is of."""
    derived = isinstance(getattr(function, "journal", None), Journal)
    return str(getattr(function, "title", "")) if derived else name_of(function)


def _kinds(arguments: Arguments) -> str:
    """Types of arguments as signatures show them: dtypes and shapes, and static values."""
    parts = [(leaf.argument, f"{leaf.place}: {_kind(leaf.value)}") for leaf in arguments.leaves]
    parts += [(static.argument, f"{static.place}={static.value!r:.40}") for static in arguments.statics]
    return ", ".join(text for _, text in sorted(parts, key=lambda part: part[0]))


def _specs(signatures: Sequence[str]) -> dict[str, str]:
    """Specs of named sizes that all ``signatures``, of one structure, are cases of; empty for few or unlike ones.

    >>> _specs(["x: float64[3,2], y: float64[3]", "x: float64[5,2], y: float64[5]", "x: float64[8,2], y: float64[8]"])
    {'x': 'float64[N,2]', 'y': 'float64[N]'}
    """
    signatures = [*dict.fromkeys(signatures)]
    rows = [re.findall(r"(?:^|, )(\w+): (\w+)(?:\[([\d,]*)\])?(?=,|$)", each) for each in signatures]
    forms = {tuple((name, dtype, extents.count(",")) for name, dtype, extents in row) for row in rows}
    whole = all(each.count(": ") == len(row) and "=" not in each for each, row in zip(signatures, rows, strict=True))
    if len(signatures) < _SHAPES or len(forms) > 1 or not whole:
        return {}
    names: dict[tuple[str, ...], str] = {}
    specs = {}
    for place, (argument, dtype, extents) in enumerate(rows[0]):
        axes = list(zip(*(row[place][2].split(",") for row in rows), strict=True)) if extents else []
        for axis in axes:
            if len(set(axis)) > 1 and axis not in names:
                names[axis] = f"N{len(names)}" if names else "N"
        specs[argument] = f"{dtype}[{','.join(names.get(axis, axis[0]) for axis in axes)}]" if axes else dtype
    return specs if names else {}


def _kind(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return type(value).__name__
    return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"


class Compiled(Derived):
    """Compiled function that `value_and_grad`, `gradient`, `jacobian`, `hessian`, `hvp` and `batch` return.

    It compiles code for each combination of argument types. ``logging.getLogger("yota")`` logs each compilation at
    level INFO.

    Examples
    --------
    >>> import numpy as np
    >>> import yota
    >>> fg = yota.value_and_grad(lambda x: np.sum(x**2))
    >>> _ = fg(np.ones(2)), fg(np.ones(3))
    >>> fg
    <yota.value_and_grad of <lambda>, target numpy, 2 compiled>
    >>> [(each.arguments, each.why) for each in fg.info().compilations]
    [('x: float64[2]', 'first call with such arguments'), ('x: float64[3]', 'first call with such arguments')]
    >>> print(fg.tape)
    Tape of <lambda>: ...

    Parameters
    ----------
    recipe, function, what, call
        See `Derived`.
    journal
        Record of its compilations.
    parts
        Functions that it calls.
    """

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __init__(
        self,
        recipe: Recipe,
        function: Callable[..., Any] | None,
        what: str = "",
        call: Any = None,
        *,
        journal: Journal,
        parts: Sequence[Any] = (),
    ) -> None:
        super().__init__(recipe, function, what, call)
        self.journal, self.calls = journal, 0
        made = recipe[0].__name__
        # Functions that share compiled code share a journal.
        self.title = journal.name = made if function is None else f"{made} of {titled(function)}"
        journal.parts += parts

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The result for these arguments."""
        self.calls += 1
        return self._call(*args, **kwargs)

    @property
    def source(self) -> str:
        """Source of the last generated code; empty before the first call."""
        return self._latest()[1]

    @property
    def tape(self) -> Tape | None:
        """Tape of the last compilation; None before the first call."""
        return self._latest()[0]

    def info(self) -> Information:
        """All compilations with time, arguments, reason and duration, and the number of calls."""
        found = [entry for each in self.journal.all() for entry in each.entries]
        calls = self.calls + getattr(self.front, "direct_calls", 0)
        return Information(self._title(), tuple(found[-_MOST_KEPT:]), calls)

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles again."""
        for part in self.journal.parts:
            part.clear()
        self.journal.forget(CLEARED)

    def __repr__(self) -> str:
        return f"<yota.{self._title()}>"

    def _title(self) -> str:
        awaited = sum(len(each.awaited) for each in self.journal.all())
        more = f", {awaited} to go on in C" if awaited else ""
        live = sum(each.live for each in self.journal.all())
        return f"{self.title}, target {self.journal.target}, {live} compiled{more}"

    def _latest(self) -> tuple[Tape | None, str]:
        return next((each.latest for each in self.journal.all() if each.latest[1]), (None, ""))
