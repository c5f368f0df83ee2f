"""Emission of C code."""
