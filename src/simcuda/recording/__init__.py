"""Recordings: what many cases cost on one device, so that the simulation can be compared with real CUDA."""
