"""What everything stands on and that knows nothing of tickets: git, files, cache, paths, text."""
