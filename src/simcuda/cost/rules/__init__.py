"""What operations cost on CUDA, one module a topic."""

from fnmatch import fnmatchcase

from simcuda.cost.rules import (
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
from simcuda.cost.rules.rule import CostRule, example_names, run_example

RULES: tuple[CostRule, ...] = (
    *host_reads.TOPIC,
    *layouts.TOPIC,
    *kernels.TOPIC,
    *layers.TOPIC,
    *reducing.TOPIC,
    *copying.TOPIC,
    *foreach.TOPIC,
    *libraries.TOPIC,
    *indexing.TOPIC,
    *sampling.TOPIC,
    *sorting.TOPIC,
    *factorizing.TOPIC,
    *sequences.TOPIC,
)
"""Every rule for operations of PyTorch."""
OF_LIBRARIES: tuple[CostRule, ...] = vision.TOPIC
"""Rules for operators of other libraries, whose examples need these."""


def rules_for(op: str) -> tuple[CostRule, ...]:
    """The rules for an operation with overload, those that name it most closely first."""
    packet = op.rpartition(".")[0]
    # Exact names beat stars, and a name with its overload beats one without.
    named = [rule for name in (op, packet) for rule in (*RULES, *OF_LIBRARIES) if name in rule.ops]
    starred = [rule for rule in RULES if any("*" in each and fnmatchcase(op, each) for each in rule.ops)]
    return (*named, *(rule for rule in starred if rule not in named))


__all__ = ["OF_LIBRARIES", "RULES", "CostRule", "example_names", "rules_for", "run_example"]
