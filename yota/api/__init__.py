"""Public functions, except those of `distributed`, `export`, `interop` and `testing`."""
