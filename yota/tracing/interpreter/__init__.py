"""Running Python functions from their source, so that what dispatch cannot see is recorded too."""
