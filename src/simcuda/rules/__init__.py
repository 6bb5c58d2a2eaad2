"""What operations cost on CUDA, one module a topic."""

from simcuda.rules import (
    comparisons,
    copying,
    counting,
    factories,
    factorizing,
    foreach,
    indexing,
    joining,
    kernels,
    reducing,
    scalars,
    sorting,
)
from simcuda.rules.registry import RULES, Registry, Rule

_TOPICS = (
    *(scalars, factories, comparisons, reducing, joining, copying),
    *(foreach, indexing, counting, kernels, sorting, factorizing),
)
for _topic in _TOPICS:
    RULES.add(*_topic.TOPIC)

__all__ = ["RULES", "Registry", "Rule"]
