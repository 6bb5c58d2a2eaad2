"""Finding tickets that are closed by measurement."""

__version__ = "0.1.0"
