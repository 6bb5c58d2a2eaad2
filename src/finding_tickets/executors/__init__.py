"""Verifying on the machines of a cluster."""
