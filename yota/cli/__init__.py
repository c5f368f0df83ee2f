"""The command line: ``yota generate``, ``show``, ``report``, ``rules``, ``check`` and ``bench``."""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0, 1 where a check failed, 2 where the call was wrong."""
    from yota.cli.application import run

    return run(arguments)
