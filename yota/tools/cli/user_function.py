"""Loads the user's function and the specs of its arguments; completes names of files, functions and rules."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

ENDINGS = (".sympy", ".txt")
"""Suffixes of files of expressions."""
Imports = Annotated[list[str], typer.Option("--import", help="Module to import first; may be repeated.")]


class UsageError(Exception):
    """The command line is wrong; the message gives the correction."""


class Loaded(Exception):
    """The import of the user's module raised an exception."""


def _expression(path: Path, name: str) -> Callable[..., Any]:
    """The function of the expression ``name`` in a file."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    from yota.interop.expression_files import formulas_of

    found = formulas_of(path)
    if name not in found:
        raise UsageError(f"{path} has no line {name} = ...; it has {', '.join(found) or 'none'}")
    return found[name]


def function_at(reference: str) -> Callable[..., Any]:
    """The function that ``reference`` names; its module is imported."""
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise UsageError(f"{reference!r} names no function; write pkg.mod:f or path/to/file.py:f")
    if place.endswith(ENDINGS):
        return _expression(Path(place), name)
    is_path = place.endswith(".py") or "/" in place or os.sep in place
    module = _from_path(Path(place)) if is_path else _from_name(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(_unknown(part, place, value))
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(f"{reference} is a {type(value).__name__}, not a function")
    return value  # type: ignore[no-any-return]


def _unknown(name: str, place: str, value: Any) -> str:
    home = getattr(value, "__name__", None)
    known = [
        each for each, found in vars(value).items() if callable(found) and getattr(found, "__module__", home) == home
    ]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known[:8])}" if known else ""
    return f"{place} has no function {name!r}{hint}"


def _from_name(name: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name is not None and (name == fault.name or name.startswith(f"{fault.name}.")):
            raise UsageError(
                f"there is no module {fault.name!r} here; run the command where `python -c 'import {name}'` works, or "
                "give a path, as in path/to/file.py:f"
            ) from None
        raise Loaded(name) from fault
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as fault:
        raise Loaded(name) from fault


def _from_path(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    name = path.stem if path.stem.isidentifier() else "module"
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look up their module by name.
    sys.modules.setdefault(name, module)
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as fault:
        raise Loaded(str(path)) from fault
    return module


def import_modules(names: Iterable[str]) -> None:
    """Import the modules of ``--import``; the current folder comes first, as with ``python -m``."""
    for name in names:
        _from_name(name)


def given(arguments: Iterable[str]) -> dict[str, str]:
    """Specs by name, from ``name=spec`` texts.

    Raises UsageError if one is of another form, or comes twice.

    >>> given(["x=float64[3]"])
    {'x': 'float64[3]'}
    """
    found: dict[str, str] = {}
    for argument in arguments:
        name, equals, spec = argument.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise UsageError(f"--arg {argument!r} is not of the form name=spec, as in x=float64[4,3]")
        if name in found:
            raise UsageError(f"--arg gives {name!r} twice")
        found[name] = spec.strip()
    return found


def load_rule_files(paths: Iterable[Path]) -> None:
    """Load the rule files of ``--rules``."""
    from yota.api.recording import load_rules

    for path in paths:
        if not path.is_file():
            raise UsageError(f"--rules {path}: there is no such file")
        load_rules(path)


def shown_reference(reference: str) -> str:
    """``reference`` for a generated file, without an absolute path."""
    place, _, name = reference.rpartition(":")
    path = Path(place)
    if not path.is_absolute():
        return f"{path.as_posix() if place.endswith('.py') else place}:{name}"
    try:
        return f"{path.relative_to(Path.cwd()).as_posix()}:{name}"
    except ValueError:
        return f"{path.name}:{name}"


_MOST = 200


def functions(incomplete: str) -> list[str]:
    """Completions of ``path/to/file.py:f``; the file is parsed and not executed."""
    place, colon, name = incomplete.rpartition(":")
    if colon:
        try:
            tree = ast.parse(Path(place).read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
        return [f"{place}:{each}" for each in names if each.startswith(name)]
    folder = Path(incomplete) if incomplete.endswith("/") else Path(incomplete).parent
    try:
        entries = sorted(folder.iterdir())[:_MOST]
    except OSError:
        return []
    found = [f"{each.as_posix()}/" if each.is_dir() else f"{each.as_posix()}:" for each in entries if _offered(each)]
    return [each for each in found if each.startswith(incomplete)]


def _offered(path: Path) -> bool:
    return not path.name.startswith((".", "__")) and (path.is_dir() or path.suffix == ".py")


def primitives(incomplete: str) -> list[str]:
    """Completions of a rule's name."""
    from yota.rules.registry import registry

    return [name for name in registry().names() if name.startswith(incomplete)]
