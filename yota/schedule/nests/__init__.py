"""The schedule of C and CUDA code: loop nests."""
