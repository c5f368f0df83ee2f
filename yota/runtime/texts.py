"""Rendered template text, stored in the private cache."""

from __future__ import annotations

from typing import Any

from yota.codegen.render import render, template_text
from yota.errors import CodegenError
from yota.runtime.store import Store, digest_of, folder


def rendered(template: str, **data: Any) -> str:
    """The result of `render`; the key of ``data`` is its representation."""
    try:
        kept = Store(folder() / "texts")
    except CodegenError:
        return render(template, **data)
    return kept.note(digest_of([template_text(template), repr(data)]), lambda: render(template, **data))
