"""What operations cost on CUDA: rules, kernels, copies, and charging them to the machine."""
