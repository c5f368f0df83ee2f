"""From a function and the arguments of a call to compiled code."""
