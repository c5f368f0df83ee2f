"""Standalone C: what a pair of files holds and how it is put together."""
