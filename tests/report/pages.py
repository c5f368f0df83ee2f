"""Functions to report on, and a reader of what the page says."""

from __future__ import annotations

import linecache
from html.parser import HTMLParser
from typing import Any

import numpy as np

TEXT = '''
def layer(W, b, x):
    """A layer."""
    h = np.tanh(W @ x + b)
    return np.sum(h**2)
'''


def made(source: str, name: str, filename: str = "<made.py>", **names: Any) -> Any:
    """A function from its source, whose lines are known as those of a file are."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope: dict[str, Any] = {"np": np, **names}
    exec(compile(source, filename, "exec"), scope)
    return scope[name]


class Reader(HTMLParser):
    """Elements of a page with their attributes, and the text of each row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]
