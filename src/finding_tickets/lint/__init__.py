"""Checks a register: the engine, its rules, what it can mend."""
