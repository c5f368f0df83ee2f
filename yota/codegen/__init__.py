"""From a simplified tape to source text."""
