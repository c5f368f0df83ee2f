"""The rule language: text, syntax and model."""
