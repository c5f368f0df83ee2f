"""Text of traced values: free where it is only written out, followed from the source, a guard where it may be data."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from yota.tracing.conversions import SHIFTS, note, shifted
from yota.tracing.current import current
from yota.tracing.implementations import implements
from yota.tracing.source_lines import caller, is_rewritten
from yota.tracing.untyped import np
from yota.tracing.writers import Called, is_written_out

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


class Text(str):
    """A string made of traced values, which become guards as soon as it is used as data.

    moves: whether it shows digits that a small step of a value changes.
    use: makes the values guards; given True, also notes that the text went where it is not followed.
    """

    __slots__ = ("_use", "moves")
    moves: bool
    _use: Callable[[bool], None]

    def __new__(cls, content: str, moves: bool, use: Callable[[bool], None]) -> Text:  # noqa: D102  (see the class)
        made = super().__new__(cls, content)
        made.moves, made._use = moves, use
        trace = current()
        if trace is not None:
            trace.texts.append(made)
        return made

    def decide(self) -> None:
        """Make the values guards."""
        self._use(False)

    def escape(self) -> None:
        """Make the values guards, and note that the text may be read back unseen."""
        self._use(True)

    def like(self, found: Any, *others: Any) -> Any:
        """``found``, which was made of this text and ``others``, as such a text too; also in a list or tuple."""
        if type(found) in (list, tuple):
            return type(found)(self.like(each, *others) for each in found)
        if not isinstance(found, str):
            return found
        every = [self, *texts_in(others)]

        def use(escapes: bool) -> None:
            for each in every:
                each._use(escapes)

        return Text(found, any(each.moves for each in every), use)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return str

    def __str__(self) -> str:
        return self

    def __format__(self, specification: str) -> Any:
        return self.like(str.__format__(self, specification))

    def __add__(self, other: str) -> Any:
        return self.like(str.__add__(self, other), other)

    def __radd__(self, other: str) -> Any:
        return self.like(str.__add__(other, self), other)

    def __iter__(self) -> Iterator[Any]:
        self.decide()
        return (self.like(each) for each in str.__iter__(self))

    def __reduce__(self) -> Any:
        return str, (str.__str__(self),)


def _used(name: str) -> Any:
    method = getattr(str, name)

    def call(self: Text, *args: Any, **keywords: Any) -> Any:
        if name not in _MADE:
            self._use(name == "encode")
        return self.like(method(self, *args, **keywords), *args)

    return call


_MADE = frozenset("join replace upper lower title capitalize casefold ljust rjust center zfill expandtabs".split())
"""Methods that make a text, and tell nothing of it."""
_DATA = (
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __contains__ __getitem__ __mod__ __mul__ __rmul__"
).split()
for _name in (*_DATA, *(name for name in dir(str) if not name.startswith("_") and name != "maketrans")):
    setattr(Text, _name, _used(_name))


def texts_in(value: Any, depth: int = 3) -> list[Text]:
    """The texts in ``value``, and in lists, tuples and dicts there."""
    if type(value) is Text:
        return [value]
    if not depth or type(value) not in (list, tuple, dict):
        return []
    parts = [*value.keys(), *value.values()] if type(value) is dict else value
    return [each for part in parts for each in texts_in(part, depth - 1)]


_MOST = 64
"""Numbers in a text that is used as data: each becomes a guard."""


def to_text(tracer: Any, make: Callable[[Any], str]) -> str:
    """The text of a value, which becomes a guard unless it is only written out; its last digits are followed."""
    trace = tracer._trace
    trace.check(tracer._variable)
    value, user = tracer._value(), caller(3)
    if trace.is_constant(tracer._current()) or is_written_out(user, trace.outlets):
        return make(value)
    moves = tracer.dtype.kind in "fc" and _moves(value, make)
    if moves:
        trace.restart(user)
    variable = tracer._current()
    if trace.reads and user is not None and is_rewritten(user):
        return _followed(trace, variable, make(shifted(trace, value, variable) if trace.shift else value), moves)
    _decide(trace, variable)
    if not moves:
        return make(value)
    text = make(shifted(trace, value, variable) if trace.shift else value)
    note(trace, variable, text)
    return text


def to_bytes(tracer: Any, order: str) -> bytes:
    """The bytes of the value, which become guards; nothing may be computed from them."""
    trace, value, variable = tracer._trace, tracer._value(), tracer._current()
    trace.check(tracer._variable)
    if not trace.is_constant(variable):
        trace.rely_on_order()
        _decide(trace, variable)
        value = shifted(trace, value, variable) if trace.shift and tracer.dtype.kind in "fc" else value
    made: bytes = value.tobytes(order)
    note(trace, variable, made)
    return made


def _followed(trace: Trace, variable: int, content: str, moves: bool) -> Text:
    """A text in the hands of a function that runs from its source."""

    def use(escapes: bool) -> None:
        if trace.finished:
            return
        _decide(trace, variable)
        if escapes and moves:
            note(trace, variable, content)

    if moves and trace.first_run is not None:
        trace.first_run.over = True  # here the first run has ended at the latest
    return Text(content, moves, use)


def _moves(value: Any, make: Callable[[Any], str]) -> bool:
    """Whether a small step of the value shows in its text."""
    text = make(value)
    return any(make(value + (abs(value) + 1.0) * shift) != text for shift in SHIFTS)


def _decide(trace: Trace, variable: int) -> None:
    """Make each number of a variable a guard."""
    tracer = trace.wrap(variable, trace.values[variable])
    if tracer.size > _MOST:
        raise trace.refuse(
            f"the text of {tracer.size} traced numbers is used as data.",
            "Print it in the call of print itself, or make it outside of the function.",
        )
    for each in np.reshape(tracer, (-1,)) if tracer.ndim else [tracer]:
        trace.decide(each._current(), "value", each._value())
        if each.dtype.kind == "f" and not each._value():
            bool(np.signbit(each))  # zeros are equal, and their texts are not


@implements(np.array2string, np.array_str, np.array_repr, named=True)
def _by_numpy(name: str, trace: Trace, a: Any, *args: Any, **keywords: Any) -> str:
    return to_text(trace.traced(a), lambda value: str(getattr(np, name)(value, *args, **keywords)))


_HOLDING = (str, list, tuple, set, frozenset, dict, int, bool)
"""Classes whose objects hold the texts that they are made of, or tell of them what a guard keeps."""
_METHODS = (str, list, tuple, set, frozenset, dict)
_READING = (print, eval, exec, compile, open, bytes, bytearray, memoryview)
"""Of Python's built-in functions, those that do more with a text than to look at it."""


def followed(
    trace: Trace, function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], made: int, found: Any
) -> Any:
    """The result ``found`` of a call that Python makes, before which there were ``made`` texts."""
    if not trace.texts:
        return found
    called = Called.of(function, trace.outlets.unknown(keywords.items()), len(args))
    texts = [*texts_in([called.owner, *args, *keywords.values()]), *trace.texts[made:]]
    if not texts or type(called.owner) is Text or called.writes(trace.outlets):
        return found
    if not (called.converts or _is_followed(called.function, called.owner)):
        for each in texts:
            each.escape()
    elif isinstance(found, (int, float)):
        for each in texts:
            each.decide()
    return joined(found, texts)


def joined(found: Any, texts: list[Text]) -> Any:
    """``found``, which was made of ``texts``, as such a text."""
    if not texts or type(found) is Text or not isinstance(found, (str, list, tuple)):
        return found
    return texts[0].like(found, texts[1:])


def _is_followed(function: Any, owner: Any) -> bool:
    """Whether what a function does with texts shows in its result alone."""
    if any(function is each for each in _READING):
        return False
    if isinstance(function, type):
        return function in _HOLDING or issubclass(function, BaseException)
    return owner is builtins or (owner is not None and isinstance(owner, _METHODS))
