"""The machines of a Ray cluster: what they have, and on which of them nothing can be measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from typing import Any

from finding_tickets.executors.node import differing_from
from finding_tickets.verify.evidence import TOOL

LABEL = "ray.io/node-id"
"""The label of a machine that Ray gives each."""
_ANSWER_SECONDS = 60.0
"""For starting a process of Ray's on each machine that is there at first."""
_SILENT_SECONDS = 600.0
"""After so many, what has not answered is as good as gone; before, Ray may still make its environment."""


class Machines:
    """Those with processors; each is asked for its versions first: what has another tool can take no order.

    Of each on which nothing can be measured ``tell`` is told. Only ``look`` waits for the head of the
    cluster; all else is said of what was there then.
    """

    def __init__(self, ray: Any, wanted: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self._ray = ray
        self._wanted = dict(wanted)
        self._tell = tell
        self._ask = ray.remote(differing_from)
        self._there: dict[str, dict[str, Any]] = {}
        self._asked: dict[str, float] = {}
        self._unheard: dict[Any, str] = {}
        self._reasons: dict[str, str] = {}
        self.look(_ANSWER_SECONDS)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why machines measure nothing, each reason once."""
        silent = [name for name in self._unheard.values() if name in self._there]
        unheard = [f"{self._on(name)}: it has not said yet what it has" for name in silent]
        return tuple(dict.fromkeys([*self._reasons.values(), *unheard]))

    @property
    def processors(self) -> int:
        """How many those have together that can measure."""
        return sum(int(has["CPU"]) for has in self.with_all({}).values())

    def look(self, patience: float = 0.0) -> None:
        """See which there are now, ask the new ones, and hear what is answered in so many seconds."""
        nodes = (node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU"))
        self._there = {node["NodeID"]: node for node in nodes}
        for name in self._there.keys() - self._asked.keys():
            self._asked[name] = time.monotonic()
            there = self._ask.options(num_cpus=0, max_retries=0, label_selector={LABEL: name})
            self._unheard[there.remote(self._wanted)] = name
        self.hear(patience, len(self._unheard))

    def hear(self, patience: float, number: int = 1) -> None:
        """Hear what is answered in so many seconds, or until so many machines have; what has answered too."""
        if self._unheard:
            for reference in self._ray.wait(list(self._unheard), num_returns=number, timeout=patience)[0]:
                self._heard(reference)

    def with_all(self, asked: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """What those have, by their names, that can measure and have all that is asked, in use or not."""
        unfit = {*self._reasons, *self._unheard.values()}
        fit = {name: node["Resources"] for name, node in self._there.items() if name not in unfit}
        return {name: has for name, has in fit.items() if _has_all(has, asked)}

    def may_have_all(self, asked: Mapping[str, float]) -> bool:
        """Whether a machine has all that is asked of which an answer is still to be expected."""
        since = time.monotonic() - _SILENT_SECONDS
        silent = (
            name for name in self._unheard.values() if name in self._there and self._asked[name] > since
        )
        return any(_has_all(self._there[name]["Resources"], asked) for name in silent)

    def has_any(self, machines: Set[str]) -> bool:
        """Whether any of these is there, whatever it can do."""
        return not machines.isdisjoint(self._there)

    def leave_out(self, machine: str, reason: str) -> None:
        """Give nothing more to a machine, and say so."""
        if machine not in self._reasons:
            self._reasons[machine] = reason
            self._tell(f"nothing is measured {reason}")

    def _heard(self, reference: Any) -> None:
        name = self._unheard.pop(reference)
        try:
            trouble = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:  # what it is asked to do cannot be imported there
            trouble = f"there is no {TOOL} {self._wanted[TOOL]}"
        except self._ray.exceptions.RayError as error:
            trouble = f"it cannot be asked: {type(error).__name__}"
        if trouble and name in self._there:
            self.leave_out(name, f"{self._on(name)}: {trouble}")

    def _on(self, name: str) -> str:
        return f"on {self._there[name]['NodeManagerHostname']}"


def _has_all(has: Mapping[str, float], asked: Mapping[str, float]) -> bool:
    return all(has.get(name, 0) >= amount for name, amount in asked.items())
