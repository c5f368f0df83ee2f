"""Standalone CUDA files and the Python files that launch their kernels."""
