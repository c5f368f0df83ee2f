"""The persistent cache of tapes and generated code, which other processes load."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import marshal
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from yota._resources import folder as data
from yota.errors import CodegenError
from yota.ir.serialised import Carried, LateTape, Unwritable, read, tape_text, text
from yota.rules.registry import registry
from yota.run.arguments import Arguments
from yota.run.compiled import BROUGHT, KEPT, Journal
from yota.run.machine.cache import Table
from yota.run.machine.python import code_of
from yota.run.machine.store import Store, digest_of, folder, processor
from yota.run.specialise import Gradient, Instead, Target, is_in_c, parts_of
from yota.settings import settings
from yota.tracing.captured.checks import Contents
from yota.tracing.captured.description import NoDigest
from yota.tracing.captured.digest import Read, kinds
from yota.tracing.memory import owner_of

if TYPE_CHECKING:
    from yota.ir.primitive import Primitive
    from yota.ir.tape import Tape

_RULE = "rule "


def reference(known: Primitive) -> str | None:
    """The name of a primitive for other processes; None if it has no rule.

    >>> from yota.ir import catalog
    >>> reference(catalog.primitive("exp"))
    'exp'
    """
    from yota.ir import catalog

    try:
        if catalog.primitive(known.name) is known:
            return known.name
    except KeyError:
        pass
    return _RULE + known.name if registry().knows(known.name) else None


def find(name: str) -> Primitive:
    """The primitive of a `reference`; a user-defined rule must be loaded in this process too."""
    from yota.ir import catalog

    if name.startswith(_RULE):
        return registry().primitive(name.removeprefix(_RULE))
    return catalog.primitive(name)


_FORMAT = "5"
_MOST_BYTES = 1 << 23
"""Largest size of constant arrays in a record; creating larger ones again costs less than storing them."""
_TOO_LARGE = f"its constant arrays have more than {_MOST_BYTES >> 20} MB"
_brought = Table(most=1_000)
"""Records of unpickled frozen functions, by key."""


def adopt(records: Iterable[tuple[str, str]]) -> None:
    """Register records of a frozen function, as pairs of key and text, for lookup."""
    for key, record in records:
        _brought.insert(key, record)


def why_not_kept(function: Callable[..., Any]) -> str:
    """Why a function has no records; empty if the function is not the reason."""
    if not settings.keeps:
        return "YOTA_CACHE disables the records"
    try:
        Read(function, ())
    except (NoDigest, RecursionError) as reason:
        return f"the code may behave differently in another process: {reason}"
    return ""


def place_of(
    function: Callable[..., Any],
    others: Iterable[Any],
    arguments: Arguments,
    options: tuple[Any, ...],
    target: Target,
    journal: Journal,
) -> Place | None:
    """The place of the code of a function for argument types like these; None if it is not stored."""
    if target.name == "cuda" or not settings.keeps:
        return None
    with contextlib.suppress(NoDigest, CodegenError, RecursionError):
        ask = functools.partial(_read, function, list(others), arguments.values)
        rest = digest_of([*_versions(), repr(options), repr(target), str(is_in_c(target))])
        return Place(ask, rest, Store(folder() / "functions"), ask(), journal)
    return None


def _read(function: Callable[..., Any], others: list[Any], values: tuple[Any, ...], *, ran: bool = False) -> Read:
    return Read(function, others, list(map(kinds, values)), ran=ran)


def _files() -> Iterator[tuple[os.DirEntry[str], str]]:
    """Each file of yota, and its path in the package."""
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    pending = [(package, "yota"), (str(data("templates")), "templates")]
    for root, part in pending:
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        pending.append((entry.path, f"{part}/{entry.name}"))
                elif not entry.name.endswith(".pyc"):
                    yield entry, f"{part}/{entry.name}"


@functools.cache
def _state_on_disk() -> str:
    """A digest of the paths, sizes and times of yota's files."""
    states = ((entry.path, entry.stat()) for entry, _ in _files())
    return digest_of(sorted(f"{path} {state.st_size} {state.st_mtime_ns}" for path, state in states))


@functools.cache
def state_of_yota() -> str:
    """A digest of the content of yota's files, independent of their location."""
    contents = ((name, Path(entry.path).read_bytes()) for entry, name in _files())
    return digest_of(sorted(f"{name} {hashlib.sha256(content).hexdigest()}" for name, content in contents))


def _versions() -> list[str]:
    # Tracing computes constants with NumPy's code for this processor.
    system = sys.version, sys.byteorder, platform.machine(), processor(), np.__version__
    return [_FORMAT, registry().content(), *system, *settings.of_code()]


def _name(primitive: Primitive) -> str:
    found = reference(primitive)
    if found is None or find(found) is not primitive:
        raise Unwritable(f"the function {primitive.name} has no rule that another process finds")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The place of the code of one function for one combination of argument types.

    ask: returns the data that the function reads now.
    rest: digest of everything else that the code depends on.
    before: the data that the function read before it was traced.
    journal: takes stored or loaded records by key, for pickles, or why there is none.
    """

    ask: Callable[..., Read]
    rest: str
    store: Store
    before: Read
    journal: Journal

    @property
    def _key(self) -> str:
        return digest_of([self.rest, self.before.digest])

    @property
    def _file(self) -> str:
        return digest_of([_state_on_disk(), self._key, *self.before.files])

    def load(self, arguments: Arguments) -> tuple[Gradient, Any, str] | None:
        """The stored tape and source, and their origin, or None; raises Instead if the record says there is no code."""
        brought = _brought.get(self._key)
        record = brought or self.store.noted(self._file)
        if record is None:
            return None
        first, *lines = record.split("\n")
        with contextlib.suppress(ValueError, KeyError, TypeError, IndexError, EOFError):
            hosts = read(lines[0], find, self.before.parts) if lines else []
            head = read(first, find, [*self.before.classes, *hosts])
            found = self._made(head, lines[1:], arguments, hosts) if lines else None
            self.journal.records.insert(self._key, record)
            if found is None:
                raise Instead(head["instead"])
            return *found, BROUGHT if brought else KEPT
        return None

    def _made(
        self, head: Any, lines: Sequence[str], arguments: Arguments, hosts: Sequence[Carried]
    ) -> tuple[Gradient, Any]:
        """The record: the source, the tape's captured data, the part of the tape that each call needs, and the rest."""
        outside, (eager, late) = self.before.parts, lines
        tape = LateTape.of(read(eager, find), lambda: read(late, find, [*outside, *hosts]), arguments.statics)
        captured, relied, fresh = (
            [outside[each] if type(each) is int else each for each in several] for several in head["arrays"]
        )
        contents = Contents.of((), relied, fresh)
        aux = rows = None
        if head["form"] is not None:
            from yota.tracing.results import ResultForm

            aux = ResultForm.read(head["form"])
        if head["rows"] is not None:
            from yota.transform.sparse.csr import CompressedRows

            rows = CompressedRows(*head["rows"])
        more = {name: head[name] for name in ("leaves", "relied", "written", "sources")}
        more["ran"] = tuple(self.before.running[place] for place in head["ran"])
        gradient = Gradient(tape, captured=tuple(captured), contents=contents, aux=aux, rows=rows, **more)
        if not gradient.fits([leaf.value for leaf in arguments.leaves]):
            raise ValueError("made for other values")
        compiled = None if head["compiled"] is None else marshal.loads(head["compiled"])
        return gradient, SimpleNamespace(**head["source"], compiled=compiled)

    def save(self, gradient: Gradient, source: Any) -> None:
        """Store a tape and its generated source, if another process can use them."""
        columns = [] if gradient.rows is None else [gradient.rows.columns]
        if sum(getattr(each, "nbytes", 0) for each in (*gradient.tape.constants.values(), *columns)) > _MOST_BYTES:
            self.journal.unsaved = _TOO_LARGE
            return

        def record(after: Read) -> str:
            hosts = _carried(gradient.tape, source)
            try:
                carried = text(hosts, _name, after.parts)
            except Unwritable:
                # Where there is one, it says the line of the call.
                tape_text(gradient.tape, _name, after.parts)
                raise
            if len(carried) > 4 * _MOST_BYTES // 3:
                raise Unwritable(_TOO_LARGE)
            head = {
                "leaves": gradient.leaves,
                "arrays": _places(gradient, after.parts),
                "source": parts_of(source),
                "compiled": None if hasattr(source, "kernels") else _bytes_of(source.text),
                "form": gradient.aux and gradient.aux.written(),
                "rows": gradient.rows and [getattr(gradient.rows, each.name) for each in fields(gradient.rows)],
                "relied": dict(gradient.relied),
                "written": list(gradient.written),
                "sources": gradient.sources,
                "ran": after.places(gradient.ran),
            }
            first = text(head, _name, [*after.classes, *hosts])
            return "\n".join([first, carried, *tape_text(gradient.tape, _name, [*after.parts, *hosts])])

        self._keep(record)

    def refuse(self, reason: Instead) -> None:
        """Store that there is no such code."""

        def record(after: Read) -> str:
            after.places(reason.ran)
            return text({"instead": reason.what}, _name)

        self._keep(record)

    def _keep(self, record: Callable[[Read], str]) -> None:
        try:
            after = self.ask(ran=True)
            # Side effects of the trace must happen in each process.
            if after.digest != self.before.digest:
                self.journal.unsaved = "the function changes what it reads"
                return
            made = record(after)
        except (NoDigest, Unwritable, OSError) as reason:
            self.journal.unsaved = str(reason)
            return
        self.journal.records.insert(self._key, made)
        with contextlib.suppress(OSError):
            self.store.put(self._file, made)


def _carried(tape: Tape, source: Any) -> list[Carried]:
    """What calls solvers on the tape, and in the code, which are the same objects or made of them."""
    static = (each for op in tape.ops for _, each in op.static)
    found = (each for each in (*source.constants.values(), *static) if isinstance(each, Carried))
    return list({id(each): each for each in found}.values())


def _bytes_of(text: str) -> np.ndarray:
    """The compiled text, which only the same version of Python reads: the key has it."""
    return np.frombuffer(marshal.dumps(code_of(text)), np.uint8)


def _places(gradient: Gradient, parts: Sequence[Any]) -> list[list[Any]]:
    """Positions in the captured data of the inputs, of arrays whose content counts, and of arrays read at each call.

    An array that the function created itself, such as the nodes of an integral, stands for itself.
    """
    places = {id(array): number for number, array in enumerate(parts)}
    owners = {id(owner_of(array)) for array in parts}
    relied = [get() for get, _ in gradient.contents.pairs]
    # An array that shares no memory with captured arrays was created by the function itself.
    relied = [array for array in relied if id(array) in places or id(owner_of(array)) in owners]
    several = gradient.captured, relied, [array for array, *_ in gradient.contents.forms]
    if any(id(array) not in places and id(owner_of(array)) in owners for arrays in several for array in arrays):
        raise Unwritable("it reads a view of an array from outside")
    found = [[places.get(id(array), array) for array in arrays] for arrays in several]
    if sum(each.nbytes for arrays in found for each in arrays if type(each) is not int) > _MOST_BYTES:
        raise Unwritable(_TOO_LARGE)
    return found
