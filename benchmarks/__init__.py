"""Workloads that time yota against plain NumPy, other libraries and code written by hand: ``python -m benchmarks``."""
