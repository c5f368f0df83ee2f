"""One module for each target language."""
