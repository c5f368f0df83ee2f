"""Finds the data folders `rules` and `templates`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def folder(name: Literal["rules", "templates"]) -> Path:
    """The folder ``name``: `yota/_data/` in a wheel, beside the package in an editable install.

    Raises
    ------
    FileNotFoundError
        If the installation lacks it.

    Examples
    --------
    >>> folder("rules").name
    'rules'
    """
    package = Path(__file__).resolve().parent
    # The inner folder comes first: a folder `rules` beside an installed package may belong to another distribution.
    for candidate in (package / "_data" / name, package.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"yota's folder {name!r} is missing from {package}; install yota again")
