"""Interpretation of Python functions from their source, which records what operators cannot show."""
