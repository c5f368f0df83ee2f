"""Functions of NumPy and Python that are recorded by what they amount to, a file for each kind; `scipy` has SciPy's."""
