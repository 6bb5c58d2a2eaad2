"""Hold the rules for costs on CUDA, one module for each topic; importing them registers the rules."""

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
_EVERY = sorted(
    filter(lambda rule: rule.is_of_this_version, _rule.RULES),
    key=lambda rule: rule.when is None,
)
RULES = tuple(rule for rule in _EVERY if rule.ops[0].startswith("aten."))
"""Every rule for operations of the PyTorch that runs."""
OF_OTHER_VERSIONS = tuple(rule for rule in _rule.RULES if not rule.is_of_this_version)
"""Rules that are true of other versions alone."""
OF_LIBRARIES = tuple(rule for rule in _EVERY if rule not in RULES)
"""Rules for operators of other libraries, whose examples need these."""


_BY_NAME: dict[str, list[CostRule]] = {}
for _entry in _EVERY:
    for _name in _entry.ops:
        _BY_NAME.setdefault(_name, []).append(_entry)
_STARRED = [name for name in _BY_NAME if "*" in name]


def rules_for(op: str) -> tuple[CostRule, ...]:
    """The rules for an operation with overload, those that name it most closely first."""
    # Exact names beat stars, and a name with its overload beats one without.
    found = [*_BY_NAME.get(op, ()), *_BY_NAME.get(op.rpartition(".")[0], ())]
    for pattern in _STARRED:
        if fnmatchcase(op, pattern):
            found += [rule for rule in _BY_NAME[pattern] if rule not in found]
    return tuple(found)


__all__ = [
    "OF_LIBRARIES",
    "OF_OTHER_VERSIONS",
    "RULES",
    "CostRule",
    "example_names",
    "rules_for",
    "run_example",
]
