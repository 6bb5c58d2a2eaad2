"""Measurements over the commits of a repository."""
