"""Functions of one point over many points."""
