"""Foreign text made harmless: comments and docstrings that hold nothing but printable ASCII."""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def visible(text: str) -> str:
    r"""``text`` in printable ASCII on one line; anything else is spelled as an escape.

    >>> print(visible("naïve\nline"))
    na\xefve\nline
    """
    return "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in text)


def comment(text: str) -> list[str]:
    r"""``text`` as lines that begin with ``# ``.

    >>> comment("a\n\nb ")
    ['# a', '#', '# b']
    """
    # Only the line breaks that Python's tokenizer knows end a line; others are escaped.
    lines = text.replace("\r\n", "\n").split("\n")
    return [f"# {visible(line.expandtabs(4))}".rstrip() for line in lines]


def docstring(text: str) -> str:
    """``text`` on one line, fit to stand between triple quotes.

    >>> print(docstring('say "x"'))
    say 'x'
    """
    return visible(" ".join(text.split())).replace("\\", "\\\\").replace('"', "'")


def shell(words: Iterable[str]) -> str:
    """A command line that a shell reads as ``words``; ASCII on one line."""
    return " ".join(word if visible(word) == word and shlex.quote(word) == word else _quoted(word) for word in words)


def _quoted(word: str) -> str:
    if visible(word) == word:
        return shlex.quote(word)
    # The form $'...' spells any character, and bash, zsh and POSIX 2024 read it.
    body = "".join(each if " " <= each <= "~" and each not in "'\\" else _escape(each) for each in word)
    return f"$'{body}'"


def _escape(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass"))
