"""The machines of a Ray cluster: what they have, and on which of them nothing can be measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from finding_tickets.cluster.node import differing_from
from finding_tickets.verify.evidence import TOOL

LABEL = "ray.io/node-id"
"""The label of a machine that Ray gives each."""
_ANSWER_SECONDS = 60.0
"""For starting a process of Ray's on a machine."""


class Machines:
    """Those with processors; ``tell`` is told of each on which nothing can be measured.

    Only ``look`` waits for the head of the cluster. All else is said of what was there then.
    """

    def __init__(self, ray: Any, wanted: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self._ray = ray
        self._wanted = dict(wanted)
        self._tell = tell
        self._there: dict[str, dict[str, Any]] = {}
        self._reasons: dict[str, str] = {}
        self.look()
        self._leave_out_unfit()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why machines were left out, each reason once."""
        return tuple(dict.fromkeys(self._reasons.values()))

    def look(self) -> None:
        """See which there are now."""
        nodes = (node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU"))
        self._there = {node["NodeID"]: node for node in nodes}

    def with_all(self, asked: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """What those have, by their names, that can measure and have all that is asked, in use or not."""
        fit = {name: node["Resources"] for name, node in self._there.items() if name not in self._reasons}
        return {
            name: has for name, has in fit.items() if all(has.get(each, 0) >= asked[each] for each in asked)
        }

    def has_any(self, machines: Set[str]) -> bool:
        """Whether any of these is there, whatever it can do."""
        return not machines.isdisjoint(self._there)

    def leave_out(self, machine: str, reason: str) -> None:
        """Give nothing more to a machine, and say so."""
        if machine not in self._reasons:
            self._reasons[machine] = reason
            self._tell(f"nothing is measured {reason}")

    def _leave_out_unfit(self) -> None:
        """Ask every machine for its versions: what has another tool cannot even take an order."""
        ask = self._ray.remote(differing_from)
        asked = {}
        for name, node in self._there.items():
            there = ask.options(num_cpus=0, max_retries=0, label_selector={LABEL: name})
            asked[there.remote(self._wanted)] = node
        last = {"num_returns": len(asked), "timeout": _ANSWER_SECONDS}
        answered, _ = self._ray.wait(list(asked), **last) if asked else ([], [])
        for reference in answered:
            try:
                differing = self._ray.get(reference)
            except self._ray.exceptions.RayError:
                differing = f"there is no {TOOL} {self._wanted[TOOL]}"
            if differing:
                node = asked[reference]
                self.leave_out(node["NodeID"], f"on {node['NodeManagerHostname']}: {differing}")
