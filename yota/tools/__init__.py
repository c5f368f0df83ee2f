"""Tools: the command line, the tape explorer, export of rules, diagnosis."""
