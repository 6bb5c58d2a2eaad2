"""What operations cost on CUDA, one module a topic."""

from simcuda.cost.rules import (
    comparisons,
    copying,
    counting,
    factories,
    factorizing,
    foreach,
    histograms,
    host_booleans,
    indexing,
    joining,
    kernels,
    normalizing,
    reducing,
    sampling,
    scalars,
    sequences,
    sorting,
    viewing,
)
from simcuda.cost.rules.registry import RULES, Registry, Rule

_TOPICS = (
    *(
        scalars,
        factories,
        comparisons,
        reducing,
        joining,
        copying,
        foreach,
        indexing,
        host_booleans,
        counting,
    ),
    *(histograms, kernels, normalizing, sampling, sorting, factorizing, viewing, sequences),
)
for _topic in _TOPICS:
    RULES.add(*_topic.TOPIC)

__all__ = ["RULES", "Registry", "Rule"]
