"""Proof of rules: the laws of the language, and what generated code gives against oracles of its own."""
