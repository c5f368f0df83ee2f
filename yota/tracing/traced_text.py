"""Text of traced values that a function run from its source has in hand: it stays known as such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from yota.tracing.state import current


class Text(str):
    """A string made of traced values.

    What is made of it is such a text again. As soon as it is used as data (compared, measured, taken apart) the values
    become guards.

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

    def __format__(self, specification: str) -> str:
        found: str = self.like(str.__format__(self, specification))
        return found

    def __add__(self, other: str) -> str:
        found: str = self.like(str.__add__(self, other), other)
        return found

    def __radd__(self, other: str) -> str:
        found: str = self.like(str.__add__(other, self), other)
        return found

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


def _each(self: Text) -> Iterator[Any]:
    self.decide()
    return (self.like(each) for each in str.__iter__(self))


Text.__iter__ = _each  # type: ignore[method-assign, assignment]


def texts_in(value: Any, depth: int = 3) -> list[Text]:
    """The texts in ``value``, and in lists, tuples and dicts there."""
    if type(value) is Text:
        return [value]
    if not depth or type(value) not in (list, tuple, dict):
        return []
    parts = [*value.keys(), *value.values()] if type(value) is dict else value
    return [each for part in parts for each in texts_in(part, depth - 1)]
