"""What operations cost on CUDA, one module a topic."""

from simcuda.rules import comparisons, copying, factories, joining, reducing, scalars
from simcuda.rules.registry import RULES, Registry, Rule

for _topic in (scalars, factories, comparisons, reducing, joining, copying):
    RULES.add(*_topic.TOPIC)

__all__ = ["RULES", "Registry", "Rule"]
