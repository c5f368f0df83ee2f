"""Reverse mode: adjoints of the inputs of a tape."""
