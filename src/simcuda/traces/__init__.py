"""Read recordings of real GPUs: traces of PyTorch's profiler, op by op."""
