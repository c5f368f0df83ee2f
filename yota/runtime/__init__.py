"""Runs generated code."""
