"""Mathematical transformations from tape to tape: reverse mode, batching, rolling, sparsity, named sizes."""
