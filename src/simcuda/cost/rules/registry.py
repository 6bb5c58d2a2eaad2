"""Rules as data: what an operation costs on CUDA, where that is known from, and an example that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from simcuda.cost.call import Call, Cost


def _always(call: Call) -> bool:  # noqa: ARG001 - the signature is that of Rule.when
    return True


@dataclass(frozen=True)
class Rule:
    """The cost of some operations.

    Attributes:
        id: Name of the rule, unique.
        ops: Operations it is for: ``aten.add`` for every overload, ``aten.add.Tensor`` for one, and a star
            for any end of a name.
        counts: The cost, or how to find it once the operation has run.
        source: Where this is known from.
        example: Code whose last line is the operation; the names are in ``rules.examples``.
        when: Whether it applies to a call; the first rule that does is taken.
        approximate: Whether a library chooses kernels or workspaces, so that the cost is a model.
        takes_host_tensors: Whether its tensors may be spread over host and device.
    """

    id: str
    ops: tuple[str, ...]
    counts: Cost | Callable[[Call], Cost]
    source: str
    example: str
    when: Callable[[Call], bool] = _always
    approximate: bool = False
    takes_host_tensors: bool = False

    @property
    def fits_every_call(self) -> bool:
        """Whether it applies whatever the arguments are."""
        return self.when is _always

    def is_for(self, name: str) -> bool:
        """Whether the rule names an operation with overload, perhaps by a star."""
        return any(fnmatchcase(name, pattern) for pattern in self.ops)

    def cost(self, call: Call) -> Cost:
        """The cost of one call."""
        return self.counts if isinstance(self.counts, Cost) else self.counts(call)


class Registry:
    """All rules, found by operation; no two with one id."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule] = {}

    def add(self, *rules: Rule) -> None:
        """Add rules.

        Raises:
            ValueError: There is a rule of that id already.
        """
        for rule in rules:
            if rule.id in self._rules:
                raise ValueError(f"two rules with the id {rule.id}")
            self._rules[rule.id] = rule

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def of(self, op: str) -> tuple[Rule, ...]:
        """The rules for an operation with overload, those that name it most closely first."""
        packet = op.rpartition(".")[0]
        named = [rule for name in (op, packet) for rule in self if name in rule.ops]
        return (*named, *(rule for rule in self if rule.is_for(op) and rule not in named))


RULES = Registry()
"""Every rule of the simulated device; the modules of this package fill it."""
