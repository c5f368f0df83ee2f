"""The conda recipe is one that rattler-build renders, and says what pyproject.toml says."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"


@pytest.fixture(scope="module")
def recipe():
    """The recipe for Linux, as data."""
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build is not installed")
    (variant,) = rattler_build.Stage0Recipe.from_file(RECIPE).render()
    return variant.recipe.to_dict()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib is of Python 3.11")
def test_the_recipe_says_what_the_project_says(recipe):
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cli"], f"python{project['requires-python']}"]
    assert {text.replace(" ", "") for text in recipe["requirements"]["run"]} == {_sorted(text) for text in wanted}
    assert recipe["package"] == {"name": project["name"], "version": project["version"]}
    assert recipe["about"]["license"] == project["license"]
    assert {*settings["build-system"]["requires"]} < {text.replace(" ", "") for text in recipe["requirements"]["host"]}
    assert all(map(importlib.import_module, recipe["tests"][0]["python"]["imports"]))
    assert (ROOT / recipe["about"]["license_file"][0]).is_file()
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"yota = {project['scripts']['yota']}"


def _sorted(requirement: str) -> str:
    name, bounds = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
    return name + bounds
