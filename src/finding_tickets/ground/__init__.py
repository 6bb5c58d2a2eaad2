"""Git, files and the cache. Nothing in this room knows tickets."""

__version__ = "0.1.0"
# Stands for the sign on a command line, where a word that begins with that would be an option.
MINUS = "\N{MINUS SIGN}"
