"""Forms of NumPy functions: what a trace records for each, a file for each kind."""
