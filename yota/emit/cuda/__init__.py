"""Emission of CUDA code."""
