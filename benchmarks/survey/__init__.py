"""Differentiates the calls that the documentation of installed packages makes, and checks the derivatives."""
