"""Functions of NumPy, SciPy and Python that are recorded by what they amount to, a file for each kind."""
