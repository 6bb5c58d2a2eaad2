"""Edits of a document: each is a few splices that leave every other byte as it is."""
