"""The project's files agree with each other, and the code keeps the project's conventions."""

from __future__ import annotations

import ast
import re
import stat
import sys
from pathlib import Path

import pytest

import yota

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "yota").rglob("*.py"))
UNUSED_WORDS = {"manager", "util", "utils", "misc"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_versions_agree() -> None:
    declared = re.search(r'^version = "(.*)"$', text("pyproject.toml"), re.MULTILINE)
    assert declared
    assert yota.__version__ == declared[1]


def test_the_package_has_its_data() -> None:
    assert (ROOT / "yota" / "py.typed").exists()
    assert list((ROOT / "rules").rglob("*.rules"))
    assert list((ROOT / "templates" / "numpy").iterdir())
    for folder in ("rules", "templates"):
        assert f'{folder} = "yota/_data/{folder}"' in text("pyproject.toml")


def test_the_check_runs_the_test_command_of_the_readme() -> None:
    setups = [line for line in text("README.md").splitlines() if "-m pytest" in line]
    assert len(setups) == 1
    command = setups[0].rpartition("&& ")[2].replace(".venv/bin/", "")
    assert command in text(".ci/run").splitlines()


def test_the_changelog_says_everything_once() -> None:
    # Two lists that a merge put together begin many items with the same words.
    items = [line[:24] for line in text("CHANGELOG.md").splitlines() if line.startswith("- ")]
    assert sorted(item for item in set(items) if items.count(item) > 1) == []


def test_the_check_can_be_run() -> None:
    assert (ROOT / ".ci" / "run").stat().st_mode & stat.S_IXUSR


def test_the_readme_runs_an_example_that_needs_only_the_package() -> None:
    assert "pip install . && .venv/bin/python examples/polynomial.py" in text("README.md")
    imported = {
        alias.name
        for statement in ast.walk(ast.parse(text("examples/polynomial.py")))
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }
    assert imported - sys.stdlib_module_names == {"numpy", "yota"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "benchmarks/README.md", "examples/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(([^)#]+)", text(page)):
        if not link.startswith("http"):
            assert ((ROOT / page).parent / link).exists(), link


def test_every_rule_file_names_its_language() -> None:
    for file in [*(ROOT / "rules").rglob("*.rules"), *(ROOT / "examples").rglob("*.rules")]:
        assert file.read_text(encoding="utf-8").startswith("# yota rules 1\n"), file


def test_files_say_what_they_are_for_and_names_use_the_project_s_words() -> None:
    wrong = []
    for file in SOURCES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        first = (ast.get_docstring(tree) or "").partition("\n")[0]
        if not first.endswith((".", "``")):
            wrong.append(f"{file}: the first line of the docstring is no sentence")
        used = {file.stem}
        for statement in ast.walk(tree):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                used.add(statement.name)
            elif isinstance(statement, ast.arg):
                used.add(statement.arg)
            elif isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
                used.add(statement.id)
        wrong += [f"{file}: {name}" for name in used if words(name) & UNUSED_WORDS]
    assert not wrong, "\n".join(wrong)


def words(name: str) -> set[str]:
    """Words of a name in either style.

    >>> sorted(words("TapeBuilder_of"))
    ['builder', 'of', 'tape']
    """
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}
