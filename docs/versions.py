"""Build the site of all versions: ``python docs/versions.py OUT``.

Each tag ``v1.2.3`` has a folder ``1.2.3`` there, and the present tree has ``dev``. Every page links to the other
versions, and the first page leads to the newest one.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={0}/index.html">\n'


def main() -> None:
    """Build what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where the site goes")
    out = parser.parse_args().out.resolve()
    known = sorted(filter(None, map(_numbers, _git("tag", "--list", "v*").decode().split())), reverse=True)
    versions = [".".join(map(str, each)) for each in known]
    shown = ["dev", *versions]
    _build(ROOT, out / "dev", "dev", shown)
    for version in versions:
        with tempfile.TemporaryDirectory() as tree:
            with tarfile.open(fileobj=io.BytesIO(_git("archive", f"v{version}"))) as files:
                files.extractall(tree, filter="data")
            _build(Path(tree), out / version, version, shown)
    (out / "index.html").write_text(REDIRECT.format(versions[0] if versions else "dev"), encoding="utf-8")


def _numbers(tag: str) -> tuple[int, ...] | None:
    return tuple(map(int, tag[1:].split("."))) if re.fullmatch(r"v\d+(\.\d+)*", tag) else None


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, stdout=subprocess.PIPE).stdout


def _build(tree: Path, out: Path, version: str, shown: list[str]) -> None:
    """Build the pages of one tree with its own code."""
    environment = {**os.environ, "DOCS_VERSION": version, "DOCS_VERSIONS": " ".join(shown), "PYTHONPATH": str(tree)}
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", str(tree / "docs"), str(out)]
    subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
