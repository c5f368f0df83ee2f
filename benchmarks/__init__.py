"""Workloads that time yota against plain NumPy, other libraries and code written by hand: ``python -m benchmarks``."""

import os

# What is timed is compiling, not reading what an earlier run has compiled.
os.environ.setdefault("YOTA_CACHE", "off")
