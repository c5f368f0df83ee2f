"""The code of the README and of the documentation runs, and prints what it is said to print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.documents import ROOT, blocks, printed, settled, updated

DOCUMENTS = sorted(path for path in (ROOT / "docs").glob("*.md") if "```" in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCUMENTS], ids=lambda path: path.stem)
def test_code_prints_what_it_is_said_to_print(
    path: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path.stem == "interop":
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    # A file that is written again within a second, at the same size, would be taken from its bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    scope: dict[str, Any] = {"__name__": path.stem}
    outputs = printed(path, scope)
    if request.config.getoption("--update-golden", default=False):
        path.write_text(updated(path.read_text(encoding="utf-8"), outputs), encoding="utf-8")
        return
    for block, output in outputs:
        assert settled(output) == settled(block.text), f"{path.name}:{block.line}"


def test_there_is_code_to_run() -> None:
    assert len(blocks((ROOT / "README.md").read_text(encoding="utf-8"))) >= 5
    assert len(DOCUMENTS) >= 5
