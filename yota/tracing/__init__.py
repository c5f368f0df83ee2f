"""Recording of plain NumPy functions onto tapes."""
