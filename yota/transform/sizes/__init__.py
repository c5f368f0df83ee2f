"""Generalisation of tapes over named sizes."""
