"""Reverse mode: extending a tape by the adjoints of its inputs."""
