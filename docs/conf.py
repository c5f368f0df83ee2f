"""Sphinx settings: ``sphinx-build docs docs/_build``."""

project = "yota"
author = "the yota developers"
project_copyright = "2026, the yota developers"
extensions = ["myst_parser"]
exclude_patterns = ["_build"]
html_theme = "furo"
