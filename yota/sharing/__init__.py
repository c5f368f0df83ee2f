"""Rules for other libraries: modules for JAX, PyTorch and autograd, rendered from rule files."""
