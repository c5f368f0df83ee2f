"""Emission: schedules as source text, by a tree that templates print."""
