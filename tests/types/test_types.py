"""Type checkers accept right uses of every public function and refuse wrong ones; the stub says what is there."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import yota

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = ("right.py", "wrong.py")


def marked() -> set[tuple[str, int]]:
    lines = (HERE / "wrong.py").read_text(encoding="utf-8").splitlines()
    return {("wrong.py", number) for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def checked(folder: Path, *command: str) -> str:
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def test_mypy():
    # Where `mypy --strict yota` has run, its cache has the types of the library.
    printed = checked(ROOT, "mypy", "--strict", *(os.path.relpath(HERE / name, ROOT) for name in FILES))
    errors = re.findall(r"(\w+\.py):(\d+): error", printed)
    assert {(name, int(line)) for name, line in errors} == marked()


@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright is not installed: pip install pyright[nodejs]"
)
def test_pyright(tmp_path):
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}), encoding="utf-8")
    for name in FILES:
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    printed = checked(tmp_path, "pyright", "--outputjson", "--pythonpath", sys.executable, *FILES)
    found = json.loads(printed)["generalDiagnostics"]
    errors = [(Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found]
    assert set(errors) == marked()


def declared() -> dict[str, set[str]]:
    """The names of the parameters of every function of the stub, of all its overloads."""
    tree = ast.parse((ROOT / "yota" / "__init__.pyi").read_text(encoding="utf-8"))
    found: dict[str, set[str]] = {}
    for each in tree.body:
        if isinstance(each, ast.FunctionDef):
            every = [*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs]
            found.setdefault(each.name, set()).update(parameter.arg for parameter in every)
    return found


def test_the_stub_has_what_is_public():
    found = declared()
    functions = {name for name in yota.__all__ if inspect.isfunction(getattr(yota, name))} - {"ctrace"}
    assert set(found) == functions
    for name in sorted(functions):
        parameters = inspect.signature(getattr(yota, name)).parameters.values()
        named = {each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
        assert found[name] == named, name


def test_right_uses_name_everything():
    text = (HERE / "right.py").read_text(encoding="utf-8")
    assert set(re.findall(r"\byota\.(\w+)", text)) >= set(yota.__all__)
