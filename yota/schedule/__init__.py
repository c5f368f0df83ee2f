"""Schedules: tapes as loops."""
