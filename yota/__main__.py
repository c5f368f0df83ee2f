"""``python -m yota`` is the command ``yota``."""

from __future__ import annotations

import sys

from yota.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
