"""Budgets: what code may spend, which lines are allowed to, and what they do spend."""
