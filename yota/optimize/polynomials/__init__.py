"""Symbolic factoring of polynomial arithmetic: import, factor, share, export."""
