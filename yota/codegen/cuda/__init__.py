"""CUDA code: kernels as plans for the templates of CUDA."""
