"""The layers of the package, and who imports whom: for the test of layers and for the diagram in the documentation."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "yota"

# From the lowest layer to the highest: a file imports its own layer and those before it. The longest prefix counts.
LAYERS = (
    *("errors", "_resources", "marks", "structures", "settings", "ir", "rules", "tracing", "tracing/captured"),
    # The private cache keeps compiled templates.
    *("optimize", "transform", "schedule", "run/machine/signals", "run/machine/store", "emit"),
    *("run/machine", "run", "run/derivatives", "solvers", "package"),
    *("api", "rules/proof", "interop", "distributed", "export", "testing", "tools", "tape_methods"),
    *("__main__", "__init__"),
)
# Imports upward, with their reasons.
UPWARD = {
    # A schedule for C asks the tables of the language which ops and dtypes it has.
    ("schedule", "emit/c/dialect"),
    # Arrays that come from sizes are expressions of Python.
    ("transform/sizes/size_arrays", "emit/numpy_literals"),
    # A recorded body keeps only the ops that its results need.
    ("tracing/loop_recording", "optimize/dce"),
    # Displays in notebooks, loaded when a notebook asks.
    ("run/result", "tools/report/notebook"),
    # Methods of tapes and ops of solvers, registered before the first function is traced.
    ("run/derivatives/differentiated", "tape_methods"),
    ("run/derivatives/inside", "solvers/__init__"),
    ("api/recording", "tape_methods"),
    # Dask arrays as arguments of a batch.
    ("api/batch", "distributed/mapped"),
}


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def place(module: str) -> str:
    """The path of a module in the package: ``yota.ir.tape`` is at ``ir/tape``, a folder at its ``__init__``."""
    path = "/".join(module.split(".")[1:])
    return f"{path}/__init__".lstrip("/") if (PACKAGE / path / "__init__.py").exists() else path


@functools.cache
def layer(path: str) -> int:
    """The rank of the layer that a path belongs to."""
    prefixes = [each for each in LAYERS if f"{path}/".startswith(f"{each}/")]
    assert prefixes, f"yota/{path} belongs to no layer"
    return LAYERS.index(max(prefixes, key=len))


@functools.cache
def imports(file: Path) -> list[tuple[int, str, bool]]:
    """``(line, module, only for types)`` of every import, inside functions too."""
    return list(_imports(file))


def _last_name(test: ast.expr) -> str:
    return test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""


def statements(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The statements of a body, those inside of others too."""
    for each in body:
        yield each
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from statements(getattr(each, part, ()))


def _imports(file: Path) -> Iterator[tuple[int, str, bool]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for statement in statements(tree.body)
        if isinstance(statement, ast.If) and _last_name(statement.test) == "TYPE_CHECKING"
        for inner in statements(statement.body)
    }
    for statement in statements(tree.body):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield statement.lineno, alias.name, id(statement) in typing_only
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{file}:{statement.lineno} imports relatively"
            for alias in statement.names:
                name = f"{statement.module}.{alias.name}"
                whole = name if is_module(name) else str(statement.module)
                yield statement.lineno, whole, id(statement) in typing_only


@functools.cache
def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name.startswith("yota") and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())
