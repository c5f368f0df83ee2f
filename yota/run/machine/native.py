"""Turns generated C into callables: compiled once, with precompiled headers, stored, loaded as an extension module."""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import itertools
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.emit.render import rendered, template_text
from yota.errors import CodegenError, CompilerError
from yota.run.machine.signals import warn_once
from yota.run.machine.store import Store, digest_of, folder, processor
from yota.settings import settings

# What another process has compiled is loaded without these.
if TYPE_CHECKING:
    from yota.emit.targets import c
    from yota.run.machine.compiler import Compiler

_HEADERS = "c/headers.h"
"""The template with the first lines of every generated extension; including them again has no effect."""
_WORTH_IT = 2
"""Number of compiled files after which a precompiled header pays off."""
_found: dict[tuple[Store, Compiler], Path] = {}


def ready_headers(kept: Store, compiler: Compiler) -> Path | None:
    """A precompiled header to include first; None while few files are compiled, or if it cannot be stored."""
    known = _found.get((kept, compiler))
    if known is None:
        if len(list(itertools.islice(kept.path.glob("*.so"), _WORTH_IT))) < _WORTH_IT:
            return None
        try:
            key = "headers-" + _headers_key(compiler)
            header = kept.path / f"{key}.h"
            kept.write(header, template_text(_HEADERS))
            kept.get(key, lambda output: compiler.parse(header, output), ".h.gch")
            known = _found[kept, compiler] = header
        except (CodegenError, OSError):
            return None
    # Emptying the cache removes the header too.
    return known if known.is_file() else None


def _headers_key(compiler: Compiler) -> str:
    """A digest of everything that precompiled headers depend on; the compiler checks its own version and flags."""
    import sysconfig

    files = [Path(sysconfig.get_paths()["include"], "Python.h")]
    files += [Path(np.get_include(), "numpy", name) for name in ("arrayobject.h", "_numpyconfig.h")]
    parts = [template_text(_HEADERS), *compiler.command, compiler.version, *compiler.flags, np.__version__]
    for file in files:
        state = os.stat(file)
        parts += map(str, (file, state.st_mtime_ns, state.st_size))
    return digest_of(parts)


_MODULE = "yota_native"
_FORMAT = "1"
_NO_ROOM = (
    "compiled code cannot be made, for temporary files cannot be written: {error}. Name a folder with room in "
    'TMPDIR, or use target="numpy"'
)
_NOT_LOADED = (
    "compiled code cannot be loaded from {place}: {error}. Where programs may not be run from that file system "
    "(noexec), name a folder on another one in YOTA_CACHE_DIR"
)


def is_available() -> bool:
    """Whether C can be compiled here; if not, it warns once in a process."""
    try:
        find()
    except CompilerError as error:
        warn_once(f"{error} Until then NumPy code runs in its place.")
        return False
    return True


def find() -> Compiler:
    """The compiler; see `yota.run.machine.compiler.find`."""
    from yota.run.machine import compiler

    return compiler.find(Store(folder()))


def load(source: c.Source) -> Callable[..., Any]:
    """The function that ``source`` defines."""
    from yota.emit.targets.generated import Source
    from yota.run.machine import python

    # Warn of an invalid number of threads.
    text = settings.threads_text
    if text and settings.threads is None:
        warn_once(
            f"YOTA_NUM_THREADS={text!r} is no number of threads, so that OpenMP's own number counts (OMP_NUM_THREADS); "
            "set it to a whole number from 1 on, or unset it"
        )
    keeper = _keeper() if source.memory else None
    module = build(source.code) if source.code else None
    kernels = {name: getattr(module, name) for name in source.kernels}
    if not source.driver:
        function: Callable[..., Any] = kernels[source.entry]
        return function
    driver = python.load(Source(source.driver, source.entry, {**source.constants, **kernels}))
    return functools.partial(keeper.within, driver) if keeper else driver


@functools.cache
def _keeper() -> ModuleType:
    """The module that allocates large arrays for the others and reuses freed memory."""
    return build(rendered("c/keeper.c.jinja"))


def build(code: str, *, anywhere: bool = False) -> ModuleType:
    """The extension module that a C text defines; ``anywhere`` says that any compiler may have compiled it."""
    store, found = Store(folder()), find()
    key = _key(code, None if anywhere else found)

    def make(output: Path) -> None:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="source-", dir=output.parent) as scratch:
            file = Path(scratch, "generated.c")
            file.write_text(code, encoding="utf-8")
            found.compile(file, output, ready_headers(store, found))

    try:
        place = store.get(key, make)
    except OSError as error:
        raise CodegenError(_NO_ROOM.format(error=error)) from None
    try:
        return _imported(place)
    except CodegenError:
        if place.is_file():
            raise
        # Another process has just removed the file to free space.
        return _imported(store.get(key, make))


def kept(code: str) -> ModuleType | None:
    """The extension module of `build` with ``anywhere``, if it is stored."""
    place = Store(folder()).kept(_key(code, None))
    return None if place is None else _imported(place)


def _key(code: str, found: Compiler | None) -> str:
    parts = [_FORMAT, code, sys.version, np.__version__, platform.machine(), processor()]
    if found is not None:
        parts += [*found.command, found.version, *found.arguments(code)]
    return digest_of([*parts, importlib.machinery.EXTENSION_SUFFIXES[0]])


def _imported(place: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(place))
    specification = importlib.util.spec_from_file_location(_MODULE, place, loader=loader)
    assert specification is not None
    try:
        module = importlib.util.module_from_spec(specification)
        loader.exec_module(module)
    except ImportError as error:
        raise CodegenError(_NOT_LOADED.format(place=place, error=error)) from None
    return module
