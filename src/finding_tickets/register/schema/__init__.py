"""The configuration of a register as pydantic models."""
