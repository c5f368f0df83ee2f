"""NVIDIA's runtime compiler, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.nvrtc import VIRTUAL, compiled, is_installed, resources
from yota.emit.targets.cuda import Source

__all__ = ["ENDS", "VIRTUAL", "compiled", "needs_nvrtc", "resources", "unit"]

ENDS = (VIRTUAL[0], VIRTUAL[-1])
"""The oldest and the newest: code that asks for no architecture and compiles for both compiles for those between."""
needs_nvrtc = pytest.mark.skipif(
    not is_installed(), reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12"
)


def unit(sources: Sequence[Source]) -> str:
    """One file with the kernels of all sources."""
    return "\n".join(f"namespace unit{number} {{\n{source.code}\n}}\n" for number, source in enumerate(sources))
