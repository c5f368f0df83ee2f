"""``yota doctor`` says what there is, without the user's name, and notices what does not work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from yota.tools import doctor
from yota.tools.cli import main

ROOT = Path(__file__).parent.parent.parent
WITHOUT_THE_EXTRA = """
import sys
for name in ("typer", "rich"):
    sys.modules[name] = None
from yota.tools.cli import main
sys.exit(main(["doctor"]))
"""


def test_a_report_of_this_machine(tmp_path):
    own = {"HOME": str(tmp_path), "YOTA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_THE_EXTRA],
        env={**os.environ, **own},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = dict(line.split("  ", 1) for line in done.stdout.splitlines())
    # What was taken away is noticed, and nothing else is wrong.
    assert done.returncode == 1 and not done.stderr, done.stdout + done.stderr
    assert [name for name, found in lines.items() if "BROKEN" in found] == ["typer", "rich"]
    assert str(tmp_path) not in done.stdout
    assert lines["cache"].strip().startswith("~/kept, drwx------, ")
    assert "YOTA_CACHE_DIR=~/kept" in lines["environment"]
    assert "runs and is right" in lines["code for NumPy"]
    if shutil.which("cc"):
        assert "runs and is right" in lines["code for c"]
        # The trial leaves nothing in the cache.
        assert not list((tmp_path / "kept").glob("*.so"))


def found(name, lines):
    return next(line for line in lines if line.name == name)


def test_a_compiler_that_fails_is_broken_and_none_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", shutil.which("false") or "false")
    line = found("C compiler", doctor._compiler())
    assert line.broken and "does not work" in line.found
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    line = found("C compiler", doctor._compiler())
    assert not line.broken and "there is no cc" in line.found


def test_a_cache_that_others_may_write_to_is_broken(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("YOTA_CACHE_DIR", str(tmp_path))
    line = found("cache", doctor._cache())
    assert line.broken and "chmod 700" in line.found


def test_wrong_results_are_broken(monkeypatch, capsys):
    monkeypatch.setattr("yota.compile", lambda tape, target: lambda x: 0.0, raising=False)
    line = found("code for NumPy", doctor._right("numpy"))
    assert line.broken and "gives 0.0" in line.found
    monkeypatch.setattr(doctor, "examined", lambda: iter([line]))
    assert main(["doctor"]) == 1
    assert "BROKEN: gives 0.0" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["{}", "{}/x", "a {}:b"])
def test_homes_are_left_out(path, monkeypatch):
    monkeypatch.setenv("HOME", "/homes/ada")
    assert doctor._without_home(path.format("/homes/ada")) == path.format("~")
    assert doctor._without_home("/homes/adam") == "/homes/adam"
