"""Reports for machines: each module writes one format, piece by piece, from the rows of the report."""
