"""Laws that every rule obeys."""
