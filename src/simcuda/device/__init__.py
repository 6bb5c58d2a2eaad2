"""The simulated machine: memory, streams and their order, generators, and where every storage lies."""
