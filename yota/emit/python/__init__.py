"""Emission of Python and NumPy code."""
