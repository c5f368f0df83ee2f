"""Compiled functions: specialisation to the arguments of a call, guards, caches."""
