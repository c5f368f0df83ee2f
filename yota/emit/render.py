"""The one door to Jinja: renders a plan with a target's template."""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yota._resources import folder
from yota.errors import CodegenError
from yota.ir.extents import Extent, factor
from yota.run.machine.store import Store, digest_of
from yota.settings import settings

if TYPE_CHECKING:
    import jinja2
    from jinja2.bccache import Bucket


def render(template: str, **data: Any) -> str:
    """Text of ``template``, a path below ``templates/``, filled with ``data``; a name that this lacks is an error."""
    return _environment().get_template(template).render(**data)


def render_lines(template: str, **data: Any) -> list[str]:
    """The same as lines."""
    return render(template, **data).split("\n")[:-1]


def rendered(template: str, **data: Any) -> str:
    """The result of `render`, kept in the private cache; the key of ``data`` is its representation."""
    store = _store("texts")
    if store is None:
        return render(template, **data)
    return store.note(digest_of([template_text(template), repr(data)]), lambda: render(template, **data))


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

    store = _store("templates")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # What is shown to a browser is escaped; what is compiled is not.
        autoescape=lambda name: name is not None and ".html" in name,
        auto_reload=False,
        bytecode_cache=None if store is None else _compiled_templates(store),
    )
    environment.filters.update(factor=factor, atom=format)
    environment.tests["extent"] = lambda number: isinstance(number, Extent)
    return environment


def _store(name: str) -> Store | None:
    """A folder of the private cache, if it may be trusted."""
    with contextlib.suppress(CodegenError):
        return Store(settings.folder / name)
    return None


def _compiled_templates(store: Store) -> jinja2.BytecodeCache:
    """Compiled templates in the private cache: Jinja takes 10 ms to compile one."""
    import jinja2

    # How Jinja compiles depends on its version, and on the options of this file.
    key = jinja2.__version__, sys.version, Path(__file__).read_text(encoding="utf-8")

    class Compiled(jinja2.BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            text = store.noted(digest_of([*key, bucket.key, bucket.checksum]))
            if text is not None:
                bucket.bytecode_from_string(base64.b64decode(text))

        def dump_bytecode(self, bucket: Bucket) -> None:
            text = base64.b64encode(bucket.bytecode_to_string()).decode()
            store.put(digest_of([*key, bucket.key, bucket.checksum]), text)

    return Compiled()
