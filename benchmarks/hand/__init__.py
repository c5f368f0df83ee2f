"""C that a person wrote, to compare with."""
