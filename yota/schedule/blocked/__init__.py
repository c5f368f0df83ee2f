"""The schedule of NumPy code: blocked loops and their memory."""
