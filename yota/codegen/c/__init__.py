"""C code: loops, kernels and scalar functions as plans for the templates of C."""
