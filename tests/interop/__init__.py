"""Tests of other libraries as hosts."""
