"""Random CUDA programs whose results are the same wherever they run."""
