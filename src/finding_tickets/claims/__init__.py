"""The language of claims and laws: parse, print, check, fit."""
