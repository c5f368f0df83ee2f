"""Batching: functions of one point mapped over many points."""
