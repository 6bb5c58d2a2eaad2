"""Findings of other tools: from a log in SARIF to drafts of tickets."""
