"""Sparsity patterns and sparse matrices of derivatives."""
