"""What runs generated code."""
