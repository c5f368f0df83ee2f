"""Standalone C files and extension modules."""
