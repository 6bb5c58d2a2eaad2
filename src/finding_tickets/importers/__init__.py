"""Findings of other tools: logs in SARIF, and the tickets that are made of them."""
