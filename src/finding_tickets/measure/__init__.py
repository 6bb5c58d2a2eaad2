"""Run code once and count what it costs; torch and the standard library only."""
