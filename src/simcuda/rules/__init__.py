"""What operations cost on CUDA, one module a topic."""

from simcuda.rules import (
    answers,
    comparisons,
    copying,
    counting,
    factories,
    factorizing,
    foreach,
    histograms,
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
from simcuda.rules.registry import RULES, Registry, Rule

_TOPICS = (
    *(scalars, factories, comparisons, reducing, joining, copying, foreach, indexing, answers, counting),
    *(histograms, kernels, normalizing, sampling, sorting, factorizing, viewing, sequences),
)
for _topic in _TOPICS:
    RULES.add(*_topic.TOPIC)

__all__ = ["RULES", "Registry", "Rule"]
