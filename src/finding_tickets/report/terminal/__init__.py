"""Documents and verifications as rich shows them on a terminal; loaded for terminals alone."""
