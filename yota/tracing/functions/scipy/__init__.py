"""Functions of SciPy that are recorded by what they amount to, a file for each kind."""
