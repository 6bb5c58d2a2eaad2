"""The command line: one file per command, which parses options, calls the rooms below and renders."""
