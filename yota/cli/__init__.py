"""The command line: ``yota generate``, ``show``, ``report``, ``rules``, ``check`` and ``bench``."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA = ("pygments", "rich", "typer")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; gives the exit code: 0, 1 where a check failed, 2 where the call was wrong."""
    try:
        from yota.cli.application import run
    except ModuleNotFoundError as fault:
        if fault.name is None or fault.name.partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(f"error: the command line needs {fault.name}; install it: pip install 'yota-ad[cli]'\n")
        return 2
    return run(arguments)
