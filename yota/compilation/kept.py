"""What was traced, factored and generated for a function, kept in the private cache for other processes.

An entry is found by the code of the function and of all that it reaches, by what they read from outside, by the kinds
of the arguments, the options, the rules, and the versions of everything that had a part in it. What has no such key, as
a function that reads a file, is not kept; see `yota.watching.digest`.

The same records go to other processes inside of pickles; see `yota.freeze`. They are looked up by the same keys.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from yota.codegen.render import templates
from yota.compilation.arguments import Arguments
from yota.compilation.compiled import BROUGHT, KEPT, Journal
from yota.compilation.primitives import find, reference
from yota.compilation.sparse import CompressedRows
from yota.compilation.specialise import Gradient, Instead, Target, is_in_c
from yota.errors import CodegenError
from yota.ir.primitive import Primitive
from yota.ir.written import LateTape, Unwritable, read, tape_text, text
from yota.rules.registry import registry
from yota.runtime.cache import Table
from yota.runtime.processor import processor
from yota.runtime.store import Store, digest_of, folder
from yota.settings import settings
from yota.tracing.memory import owner_of
from yota.tracing.observation import Running
from yota.tracing.results import ResultForm
from yota.watching.contents import Contents
from yota.watching.digest import NoDigest, Read, kinds

__all__ = ["Place", "adopt", "place_of", "state_of_yota", "why_not_kept"]

_FORMAT = "2"
_MOST_BYTES = 1 << 23
"""Of arrays that were made when a function was traced: to make larger ones again costs less than to keep them."""
_brought = Table(most=1_000)
"""Records that came with functions that were frozen, by key."""


def adopt(records: Iterable[tuple[str, str]]) -> None:
    """Have records that came from another process, as pairs of a key and a text, found as kept ones are."""
    for key, record in records:
        _brought.insert(key, record)


def why_not_kept(function: Callable[..., Any]) -> str:
    """Why what is compiled for a function has no records; empty if the reason is not the function."""
    if not settings.keeps:
        return "YOTA_CACHE turns off what records are found by"
    try:
        Read(function, ())
    except (NoDigest, RecursionError) as reason:
        return f"another process may find other things than this one: {reason}"
    return ""


def place_of(
    function: Callable[..., Any],
    others: Iterable[Any],
    arguments: Arguments,
    options: tuple[Any, ...],
    target: Target,
    journal: Journal,
) -> Place | None:
    """Where the code of a function for arguments like these is kept; None if it is not.

    Parameters
    ----------
    function
        The function of the user's.
    others
        What brings code along among the arguments.
    arguments
        The arguments.
    options
        What else the code depends on.
    target
        What is generated.
    journal
        Gets the records.
    """
    if target.name == "cuda" or not settings.keeps:
        return None
    with contextlib.suppress(NoDigest, CodegenError, RecursionError):
        ask = functools.partial(_read, function, list(others), arguments.values)
        rest = digest_of([*_versions(), repr(options), repr(target), str(is_in_c(target))])
        return Place(ask, rest, Store(folder() / "functions"), ask(), journal.records)
    return None


def _read(function: Callable[..., Any], others: list[Any], values: tuple[Any, ...], *, ran: bool = False) -> Read:
    return Read(function, others, list(map(kinds, values)), ran=ran)


def _files() -> Iterator[tuple[Path, str]]:
    """Each file that yota consists of, and its place among them."""
    for part, root in (("yota", Path(__file__).resolve().parent.parent), ("templates", templates())):
        for place, _, names in os.walk(root):
            for path in (Path(place, name) for name in names if not name.endswith(".pyc")):
                yield path, f"{part}/{path.relative_to(root).as_posix()}"


@functools.cache
def _state_on_disk() -> str:
    """Which files yota consists of, here."""
    states = ((path, path.stat()) for path, _ in _files())
    return digest_of(sorted(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states))


@functools.cache
def state_of_yota() -> str:
    """What is in the files that yota consists of, wherever they are."""
    return digest_of(sorted(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path, name in _files()))


def _versions() -> list[str]:
    # Constants are computed when a function is traced, by NumPy's code for the processor.
    system = sys.version, sys.byteorder, platform.machine(), processor(), np.__version__
    return [_FORMAT, registry().digest(), *system, *settings.of_code()]


def _name(primitive: Primitive) -> str:
    found = reference(primitive)
    if found is None or find(found) is not primitive:
        raise Unwritable(f"the function {primitive.name}")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where the code of one function is kept, for arguments of one kind.

    Parameters
    ----------
    ask
        Gives what the function reads now.
    rest
        Digest of all else that the code depends on.
    store
        The private cache.
    before
        What the function read before it was traced.
    records
        Those that were kept or found, by key, for pickles.
    """

    ask: Callable[..., Read]
    rest: str
    store: Store
    before: Read
    records: Table

    @property
    def _key(self) -> str:
        return digest_of([self.rest, self.before.digest])

    @property
    def _file(self) -> str:
        return digest_of([_state_on_disk(), self._key])

    def load(self, arguments: Arguments) -> tuple[Gradient, Any, str] | None:
        """The tape and the source that are kept, and where; None if there are none, or none that are whole.

        Raises
        ------
        Instead
            If it is known that there is no such code.
        """
        brought = _brought.get(self._key)
        record = brought or self.store.noted(self._file)
        if record is None:
            return None
        first, *lines = record.split("\n")
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError):
            head = read(first, find, self.before.classes)
            found = self._made(head, lines, arguments) if lines else None
            self.records.insert(self._key, record)
            if found is None:
                raise Instead(head["instead"])
            return *found, BROUGHT if brought else KEPT
        return None

    def _made(self, head: Any, lines: Sequence[str], arguments: Arguments) -> tuple[Gradient, Any]:
        """Of the source and how the tape meets the process, what of the tape each call needs, and the rest of it."""
        outside, (eager, late) = self.before.parts, lines
        tape = LateTape.of(read(eager, find), lambda: read(late, find, outside), arguments.statics)
        captured, relied, fresh = ([outside[number] for number in numbers] for numbers in head["arrays"])
        contents = Contents.now(relied, fresh)
        aux = None if head["form"] is None else ResultForm.read(head["form"])
        rows = None if head["rows"] is None else CompressedRows(*head["rows"])
        more = {name: head[name] for name in ("leaves", "relied")}
        gradient = Gradient(tape, captured=tuple(captured), contents=contents, aux=aux, rows=rows, **more)
        if not gradient.fits([leaf.value for leaf in arguments.leaves]):
            raise ValueError("made for other values")
        return gradient, SimpleNamespace(**head["source"])

    def save(self, gradient: Gradient, source: Any) -> None:
        """Keep a tape and the source that was generated for it, if another process can have the same."""
        columns = [] if gradient.rows is None else [gradient.rows.columns]
        if sum(getattr(each, "nbytes", 0) for each in (*gradient.tape.constants.values(), *columns)) > _MOST_BYTES:
            return

        def record(after: Read) -> str:
            parts = {each.name: getattr(source, each.name) for each in fields(source)}
            head = {
                "leaves": gradient.leaves,
                "arrays": _places(gradient, after.parts),
                "source": parts,
                "form": gradient.aux and gradient.aux.written(),
                "rows": gradient.rows and [getattr(gradient.rows, each.name) for each in fields(gradient.rows)],
                "relied": dict(gradient.relied),
            }
            return "\n".join([text(head, _name, after.classes), *tape_text(gradient.tape, _name, after.parts)])

        self._keep(gradient.ran, record)

    def refuse(self, reason: Instead) -> None:
        """Keep that there is no such code."""
        self._keep(reason.ran, lambda _: text({"instead": reason.what}, _name))

    def _keep(self, ran: Iterable[Running], record: Callable[[Read], str]) -> None:
        with contextlib.suppress(NoDigest, Unwritable, OSError):
            after = self.ask(ran=True)
            # What the function did to its surroundings, it has to do in each process.
            if after.digest == self.before.digest and all(after.covers(each.code) for each in ran):
                made = record(after)
                self.records.insert(self._key, made)
                self.store.put(self._file, made)


def _places(gradient: Gradient, parts: Sequence[Any]) -> list[list[int]]:
    """Where among what the function reads its inputs are, the arrays whose content counts, and those read afresh."""
    places = {id(array): number for number, array in enumerate(parts)}
    owners = {id(owner_of(array)) for array in parts}
    relied = [get() for get, _ in gradient.contents.pairs]
    # What shows nothing of these arrays' memory the function has made itself.
    relied = [array for array in relied if id(array) in places or id(owner_of(array)) in owners]
    several = gradient.captured, relied, [array for array, *_ in gradient.contents.forms]
    if any(id(array) not in places for arrays in several for array in arrays):
        raise Unwritable("a view of an array")
    return [[places[id(array)] for array in arrays] for arrays in several]
