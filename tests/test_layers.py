"""Imports go strictly down the layers, without cycles, and each outside library has its door."""

from __future__ import annotations

import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.layers import PACKAGE, ROOT, UPWARD, files, imports, layer, module_name, place

# Which files may import a library that not every file may.
DOORS = {
    "sympy": (
        "rules/algebras/opaque",
        "rules/laws/all_laws",
        "rules/laws/cancellation",
        "rules/algebras/sympy_functions",
        "optimize/polynomials/symbolic",
        "transform/sizes/size_expressions",
        "interop/sympy_import",
        "interop/sympy_modules",
        "interop/sympy_export",
    ),
    "mpmath": ("rules/algebras/digits",),
    "jinja2": ("emit/render",),
    "pygments": ("tools/report/source_pieces",),
    "cloudpickle": ("api/freezing",),
    "cupy": ("run/machine/cupy",),
    "dask": ("distributed/",),
    "optree": ("structures", "interop/torch"),
    "jax": ("interop/jax",),
    "torch": ("interop/torch",),
    "scipy": ("transform/sparse/csr",),
}


def test_imports_go_down() -> None:
    wrong = [
        f"{file}:{line} imports {module}"
        for file in files()
        for own in [place(module_name(file))]
        for line, module, for_types in imports(file)
        if module.startswith("yota.") and not for_types and layer(place(module)) > layer(own)
        if not any(own.startswith(lower) and place(module) == higher for lower, higher in UPWARD)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_file_name_stands_at_most_twice() -> None:
    names = [file.name for file in files() if file.name != "__init__.py"]
    assert sorted(name for name in set(names) if names.count(name) > 2) == []


def test_tapes_stay_above_the_runtime() -> None:
    wrong = [
        f"{file}:{line}"
        for file in (PACKAGE / "run" / "machine").glob("*.py")
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
        "print(sorted(each for each in sys.modules if each in ('numpy', 'yota.tracing', 'yota.emit')))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
