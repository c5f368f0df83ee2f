"""Rules of installed packages, which are entry points written onto the module search path."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import RuleError
from yota.tools.cli import main

TEMPLATE = Path(__file__).parents[2] / "examples" / "rules_package"
X = np.array([0.3, -0.7, 1.5])
Install = Callable[..., None]
HEAD = "# yota rules 1\n"
CUBE = """
@elementwise("cubes.cube")
def cube(x: Real) -> y:
    y = x * x * x
    d[y, x] = 3 * x * x
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("yota.rules.registry._default", None)
    monkeypatch.setattr("yota.rules.registry._packages", None)

    def write(name: str, entry: str, files: dict[str, str], version: str = "1.0") -> None:
        for file, text in files.items():
            (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / file).write_text(text)
        folder = tmp_path / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (folder / "entry_points.txt").write_text(f"[yota.rules]\n{entry}\n")

    yield write
    for module in ("cubes", "bumps"):
        sys.modules.pop(module, None)


MODULE = "import math\ndef cube(x):\n    return math.pow(float(x), 3)\n"


def test_the_template_is_such_a_package(install: Install, tmp_path: Path) -> None:
    project = (TEMPLATE / "pyproject.toml").read_text()
    entry = re.search(r'^\[project\.entry-points\."yota\.rules"\]\n(.*)$', project, re.MULTILINE)
    assert entry
    install("bumps", entry[1].replace('"', ""), {})
    shutil.copytree(TEMPLATE / "src" / "bumps", tmp_path / "bumps")
    scope: dict[str, Any] = {}
    exec((TEMPLATE / "tests" / "test_bumps.py").read_text(), scope)
    scope["test_derivatives_come_with_the_package"]()


def test_rules_come_when_their_module_is_imported(install: Install) -> None:
    install("cubes", "cubes = cubes:cubes.rules", {"cubes/__init__.py": MODULE, "cubes/cubes.rules": HEAD + CUBE})
    yota.grad(np.sum, X)
    assert not yota.rules.registry.registry().knows("cube")
    import cubes

    np.testing.assert_allclose(yota.grad(lambda x: cubes.cube(x), 2.0)[1][0], 12.0)
    assert yota.rules.registry.registry().knows("cube")


def test_a_folder_of_rules_for_somebody_else_s_module(install: Install, tmp_path: Path) -> None:
    (tmp_path / "cubes.py").write_text(MODULE)
    install(
        "extras", "cubes = extras:rules", {"extras/__init__.py": "raise OSError", "extras/rules/a.rules": HEAD + CUBE}
    )
    import cubes

    np.testing.assert_allclose(yota.grad(lambda x: cubes.cube(x), 2.0)[1][0], 12.0)


BROKEN = {
    "a fault": ("cubes = cubes:cubes.rules", HEAD + CUBE.replace("3 *", "2 *"), r"cubes\.rules:6:15: d\[y, x\] is not"),
    "syntax": ("cubes = cubes:cubes.rules", HEAD + "@elementwise(\n", r"cubes\.rules:\d+:\d+: "),
    "code": ("cubes = cubes:cubes.rules", HEAD + "import os\n", r"cubes\.rules:2:1: "),
    "no header": ("cubes = cubes:cubes.rules", CUBE, r"cubes\.rules:1:1: "),
    "no file": ("cubes = cubes:other.rules", HEAD, "there is no file other.rules in the package cubes"),
    "outside": ("cubes = cubes:../cubes.rules", HEAD, "names no rule file; write"),
    "upwards": ("cubes = cubes:...rules", HEAD, "there is no file ...rules in the package cubes"),
    "no package": ("cubes = nowhere:cubes.rules", HEAD, "there is no file cubes.rules in the package nowhere"),
    "no rules": ("cubes = cubes:cubes.rules", HEAD, "there are no rules in"),
    "no function": (
        "cubes = cubes:cubes.rules",
        HEAD + CUBE.replace("cubes.cube", "cubes.cubic"),
        r"cubes\.rules:4: there is no function cubes\.cubic",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_named(name: str, install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    entry, rules, message = BROKEN[name]
    install("cubes", entry, {"cubes/__init__.py": MODULE, "cubes/cubes.rules": rules})
    yota.grad(np.sum, X)
    import cubes  # noqa: F401

    for _ in range(2):
        with pytest.raises(RuleError, match=rf"(?s)cubes 1\.0 \(rules of 'cubes'\): .*{message}"):
            yota.grad(np.sum, X[:2])


def test_two_packages_with_rules_for_one_function(install: Install) -> None:
    files = {"cubes/__init__.py": MODULE, "cubes/cubes.rules": HEAD + CUBE}
    install("cubes", "cubes = cubes:cubes.rules", files)
    install(
        "more-cubes", "cubes = more_cubes:c.rules", {"more_cubes/__init__.py": "", "more_cubes/c.rules": HEAD + CUBE}
    )
    import cubes  # noqa: F401

    with pytest.raises(
        RuleError, match=r"(?s)more-cubes 1\.0 .* and cubes 1\.0 .* both have rules for cube, .*uninstall"
    ):
        yota.grad(np.sum, X)


def test_what_is_installed_is_listed(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(
        "cubes", "cubes = cubes:cubes.rules", {"cubes/__init__.py": "raise OSError", "cubes/cubes.rules": HEAD + CUBE}
    )
    assert main(["rules", "--installed"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"cubes +1\.0 +cubes +\S+cubes.rules +1\n", shown)
    install("torn", "torn = torn:t.rules", {"torn/__init__.py": "", "torn/t.rules": "@"}, "2.5")
    assert main(["rules", "--installed", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(each["package"], each["version"], each["rules"]) for each in found] == [
        ("cubes", "1.0", 1),
        ("torn", "2.5", None),
    ]
    assert "torn 2.5" in found[1]["fault"]
