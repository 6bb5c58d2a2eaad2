"""The simulated machine: memory, streams and their order, generators, and the device of every storage."""
