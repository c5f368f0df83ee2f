"""The rule language: derivative rules as data."""
