"""The command line: ``yota generate``, ``show``, ``report``, ``rules``, ``check``, ``bench`` and ``doctor``."""

from __future__ import annotations

import sys

_EXTRA = ("pygments", "rich", "typer")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return exit code 0, 1 if a check failed, or 2 for wrong usage."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["doctor"]:
        # This command reports missing packages, so it must not need any.
        from yota.tools.doctor import doctor

        return doctor()
    try:
        from yota.tools.cli.application import run
    except ModuleNotFoundError as fault:
        if fault.name is None or fault.name.partition(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(f"error: the command line needs {fault.name}; install it: pip install 'yota-ad[cli]'\n")
        return 2
    return run(arguments)
