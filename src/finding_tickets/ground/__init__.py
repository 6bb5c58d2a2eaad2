"""Git, files, the cache and tokens. Nothing in this room knows tickets."""

__version__ = "0.1.0"
