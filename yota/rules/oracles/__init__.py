"""Functions of NumPy and SciPy to 50 digits: what rules are held against."""
