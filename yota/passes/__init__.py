"""Passes: tape to tape, and tape to schedule."""
