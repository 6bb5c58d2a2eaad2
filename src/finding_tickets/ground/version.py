"""The version of the tool."""

__version__ = "0.1.0"
