"""Standalone modules: public functions, checks and banner around the generated kernels."""
