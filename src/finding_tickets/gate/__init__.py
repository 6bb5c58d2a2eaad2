"""Judges a branch: what it changed, what was measured again, which cheats pass."""
