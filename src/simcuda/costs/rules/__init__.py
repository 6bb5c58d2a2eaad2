"""What operations cost on CUDA, one module a topic; importing the modules makes the rules."""

from fnmatch import fnmatchcase

from simcuda.costs.rules import (  # noqa: F401 - importing them makes their rules
    copying,
    factorizing,
    foreach,
    host_reads,
    indexing,
    kernels,
    layers,
    layouts,
    libraries,
    reducing,
    sampling,
    sequences,
    sorting,
    vision,
)
from simcuda.costs.rules import rule as _rule
from simcuda.costs.rules.rule import CostRule, example_names, run_example

# Those of one operation in the order of their modules; one that is for all calls comes after the others.
_EVERY = sorted(filter(lambda rule: rule.is_of_this_version, _rule.RULES), key=lambda rule: rule.when is None)
RULES = tuple(rule for rule in _EVERY if rule.ops[0].startswith("aten."))
"""Every rule for operations of the PyTorch that runs."""
OF_OTHER_VERSIONS = tuple(rule for rule in _rule.RULES if not rule.is_of_this_version)
"""Rules that are true of other versions alone."""
OF_LIBRARIES = tuple(rule for rule in _EVERY if rule not in RULES)
"""Rules for operators of other libraries, whose examples need these."""


def rules_for(op: str) -> tuple[CostRule, ...]:
    """The rules for an operation with overload, those that name it most closely first."""
    packet = op.rpartition(".")[0]
    # Exact names beat stars, and a name with its overload beats one without.
    named = [rule for name in (op, packet) for rule in _EVERY if name in rule.ops]
    starred = [rule for rule in RULES if any("*" in each and fnmatchcase(op, each) for each in rule.ops)]
    return (*named, *(rule for rule in starred if rule not in named))


__all__ = [
    "OF_LIBRARIES",
    "OF_OTHER_VERSIONS",
    "RULES",
    "CostRule",
    "example_names",
    "rules_for",
    "run_example",
]
