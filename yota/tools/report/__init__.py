"""The tape explorer: one HTML page that links source, tape, rules and generated code."""

from __future__ import annotations

__all__: list[str] = []
