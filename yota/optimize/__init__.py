"""Passes: optimizations from tape to tape."""
