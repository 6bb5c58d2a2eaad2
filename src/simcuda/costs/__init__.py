"""Model the cost of operations on CUDA: rules, kernels, copies, and charging them to the machine."""
