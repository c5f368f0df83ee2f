"""Functions that run from their rewritten source, which records what operators cannot show."""
