"""What the tool claims about its speed, each claim beside its peer or its floor: ``python -m benchmarks``."""
