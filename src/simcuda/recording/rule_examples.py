"""Cases from the rule table: the example of every rule."""

from __future__ import annotations

from functools import partial

from simcuda.cost.rules import RULES, CostRule, example_names, run_example
from simcuda.recording.case import Case, Work, digest, seed_all


def cases() -> list[Case]:
    """A case for every rule."""
    return [Case(f"rule/{rule.id}", partial(_prepare, rule), digest(rule.example)) for rule in RULES]


def _prepare(rule: CostRule, seed: int) -> Work:
    seed_all(seed)
    names = example_names()
    return lambda: run_example(rule, names)
