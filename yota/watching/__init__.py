"""What a function reads besides its arguments, and whether that has changed."""
