"""The one door to Jinja: renders a plan with a target's template."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from yota._resources import folder
from yota.ir.extents import Extent, factor

if TYPE_CHECKING:
    import jinja2


def render(template: str, **data: Any) -> str:
    """Text of ``template``, a path below ``templates/``, filled with ``data``; a name that this lacks is an error."""
    return _environment().get_template(template).render(**data)


def render_lines(template: str, **data: Any) -> list[str]:
    """The same as lines."""
    return render(template, **data).split("\n")[:-1]


def template_text(template: str) -> str:
    """What a template consists of."""
    return (folder("templates") / template).read_text(encoding="utf-8")


@cache
def macros(template: str, name: str) -> Callable[..., str]:
    """The macro ``name`` of ``template``."""
    found: Callable[..., str] = getattr(_environment().get_template(template).module, name)
    return found


@cache
def _environment() -> jinja2.Environment:
    # Jinja takes 30 ms to import: only a process that generates code pays for it.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is shown to a browser is escaped; what is compiled is not.
        autoescape=lambda name: name is not None and ".html" in name,
        auto_reload=False,
    )
    environment.filters.update(factor=factor, atom=format)
    environment.tests["extent"] = lambda number: isinstance(number, Extent)
    return environment
