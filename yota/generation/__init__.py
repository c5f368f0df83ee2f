"""Standalone modules: kernels from tapes, functions around them, and text as ruff leaves it."""
