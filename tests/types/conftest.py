"""The user code here is read by type checkers, and never run."""

collect_ignore = ["right.py", "wrong.py"]
