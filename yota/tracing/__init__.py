"""Recording a plain NumPy function onto a tape."""
