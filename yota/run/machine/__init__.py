"""Compilers, devices, caches on disk, and loading of generated code."""
