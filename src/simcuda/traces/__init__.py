"""What real GPUs recorded: traces of PyTorch's profiler, read op by op."""
