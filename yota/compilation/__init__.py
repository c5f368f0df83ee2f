"""Compiles a function for the arguments of a call."""
