"""Torch on the simulated machine: its dispatcher, and what of its Python API is replaced or refused."""
