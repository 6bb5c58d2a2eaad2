"""What everything stands on: git, files, the cache and tokens; nothing here knows what a ticket says."""

__version__ = "0.1.0"
