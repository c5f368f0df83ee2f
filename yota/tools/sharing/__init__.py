"""Export of rule files as modules for JAX, PyTorch and autograd."""
