"""Imports go strictly down the layers, without cycles, and each outside library has its door."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "yota"

# What each layer may import besides itself. All other files directly in yota/ are the top layer, which may import
# everything; nothing below may import them.
BELOW = {
    "errors": set(),
    "_resources": {"errors"},
    "structures": {"errors"},
    "marks": set(),
    "settings": {"errors"},
    "ir": {"errors", "settings"},
    "rules": {"errors", "_resources", "ir"},
    "tracing": {"errors", "structures", "marks", "settings", "ir", "rules"},
    "autodiff": {"errors", "settings", "ir", "rules"},
    "passes": {"errors", "ir"},
    "codegen": {"errors", "_resources", "ir", "passes"},
    # It knows plans, and no tapes.
    "runtime": {"errors", "_resources", "settings", "codegen"},
    "watching": {"errors", "structures", "marks", "ir", "tracing"},
    "compilation": {
        *("errors", "structures", "marks", "settings", "ir", "rules", "tracing", "autodiff", "passes", "codegen"),
        *("runtime", "watching"),
    },
}
# Folders of the top layer.
TOP = {
    *("derivatives", "distributed", "batching", "solvers", "generation", "interop", "report", "proof", "sharing"),
    "cli",
}
# Which files may import a library that not every file may.
DOORS = {
    "sympy": (
        "rules/algebras/symbolic",
        "rules/laws",
        "rules/cancellation",
        "rules/algebras/functions",
        "codegen/symbolic",
        "codegen/printers",
        "generation/sizes",
        "interop/reading",
        "interop/tapes",
    ),
    "mpmath": ("rules/algebras/digits",),
    "jinja2": ("codegen/render",),
    "pygments": ("report/sources",),
    "cloudpickle": ("freezing",),
    "cupy": ("runtime/cuda",),
    "dask": ("distributed/",),
    "optree": ("structures", "interop/torch"),
    "jax": ("interop/jax",),
    "torch": ("interop/torch",),
    "scipy": ("compilation/sparse",),
}


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer(module: str) -> str | None:
    """The layer of a module of yota; None for the top."""
    part = module.split(".")[1] if "." in module else ""
    return part if part in BELOW else None


@functools.cache
def imports(file: Path) -> list[tuple[int, str, bool]]:
    """``(line, module, only for types)`` of every import, inside functions too."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str, bool]]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.If) and ast.unparse(statement.test).endswith("TYPE_CHECKING")
        for body in statement.body
        for inner in ast.walk(body)
    }
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield statement.lineno, alias.name, id(statement) in typing_only
        elif isinstance(statement, ast.ImportFrom):
            assert statement.level == 0, f"{file}:{statement.lineno} imports relatively"
            for alias in statement.names:
                name = f"{statement.module}.{alias.name}"
                whole = name if is_module(name) else str(statement.module)
                yield statement.lineno, whole, id(statement) in typing_only


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return name.startswith("yota") and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


@pytest.mark.parametrize("file", files(), ids=module_name)
def test_imports_go_down(file: Path) -> None:
    own = layer(module_name(file))
    if own is None:
        return
    wrong = [
        f"{file}:{line} imports {module}"
        for line, module, _ in imports(file)
        if module.split(".")[0] == "yota" and layer(module) not in {own, *BELOW[own]}
    ]
    assert not wrong, "\n".join(wrong)


def test_tapes_stay_above_the_runtime() -> None:
    wrong = [
        f"{file}:{line}"
        for file in (PACKAGE / "runtime").glob("*.py")
        for line, module, _ in imports(file)
        if module.startswith("yota.ir")
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_no_cycles() -> None:
    known = {module_name(file) for file in files()}
    depends = {
        module_name(file): {module for _, module, for_types in imports(file) if module in known and not for_types}
        - {module_name(file)}
        for file in files()
    }
    # The package's own __init__ hands names out when they are asked for.
    depends.pop("yota", None)
    try:
        TopologicalSorter(depends).prepare()
    except CycleError as cycle:
        pytest.fail(" imports ".join(reversed(cycle.args[1])))


@pytest.mark.parametrize("library", DOORS)
def test_each_library_has_its_door(library: str) -> None:
    wrong = [
        f"{file}:{line}"
        for file in files()
        for line, module, _ in imports(file)
        if module.split(".")[0] == library
        and not file.relative_to(PACKAGE).with_suffix("").as_posix().startswith(DOORS[library] or ("-",))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_layer_is_known() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("_")}
    assert folders <= set(BELOW) | TOP


def test_importing_yota_imports_nothing_heavy() -> None:
    heavy = {"sympy", "jinja2", "scipy", "mpmath", "optree", "jax", "torch"}
    program = f"import sys, yota; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_gradient_needs_no_sympy() -> None:
    program = (
        "import sys, numpy as np, yota; "
        "yota.grad(lambda x: np.sum(np.exp(x) * x), np.ones(3)); "
        "print(sorted({'sympy', 'scipy', 'mpmath'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_naming_the_gradients_imports_neither_tracing_nor_numpy() -> None:
    program = (
        "import sys; from yota import grad, gradient, value_and_grad;"
        "print(sorted(each for each in sys.modules if each in ('numpy', 'yota.tracing', 'yota.codegen')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
