"""Sphinx settings: ``sphinx-build -W docs docs/_build`` builds the site, and fails at the first warning."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parent.parent

project = "yota"
author = "the yota developers"
project_copyright = "2026, the yota developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_generated", "_templates"]
html_theme = "furo"
release = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
# `versions.py` builds several beside each other, which its pages link to.
shown, versions = os.environ.get("DOCS_VERSION", release), os.environ.get("DOCS_VERSIONS", "").split()
html_title = f"yota {shown}"
html_context = {"shown": shown, "versions": versions}
templates_path = ["_templates"]
_BEFORE = ("brand", "search", "scroll-start", "navigation")
html_sidebars = {"**": [*(f"sidebar/{part}.html" for part in _BEFORE), "versions.html", "sidebar/scroll-end.html"]}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
# What a command prints is in no language.
suppress_warnings = ["misc.highlighting_failure"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False


def setup(app: Any) -> None:
    """Make the pages that no hand writes."""
    import generated

    app.connect("builder-inited", lambda app: generated.write(Path(app.srcdir) / "_generated"))
