"""The interpreter of rule expressions, and the algebras that it evaluates them in."""
