"""The language of claims and laws: parse, check, fit. Pure, on the standard library alone."""
