"""Tracks the data and functions that a function reads besides its arguments, and detects changes."""
