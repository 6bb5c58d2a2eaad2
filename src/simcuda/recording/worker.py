"""A process that runs the cases of one suite and reports each, line by line, on a pipe.

A line is a JSON object with one of these keys: ``why_not`` (nothing can be counted here), ``environment``,
``absent`` (why the suite has no cases here), ``group`` (its name, where it begins), ``case`` (its id, where
it begins, and again with its ``outcome``), ``end``. A worker that ends before it is done is to be followed by
another one.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from simcuda.recording.case import Case, Group, NotRunError
from simcuda.recording.devices import Devices, Real, Simulated, profile_from
from simcuda.recording.measuring import in_words, outcome
from simcuda.recording.selection import Selection

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Order:
    """What a worker is to do.

    Attributes:
        suite: The suite.
        selection: What of it.
        profile: The profile to simulate, as a header has it; None for the real devices.
        groups_done: Groups that are done.
        cases_done: Cases that are done of the groups that are not.
    """

    suite: str
    selection: Selection
    profile: dict[str, Any] | None
    groups_done: frozenset[str] = frozenset()
    cases_done: frozenset[str] = frozenset()

    def to_json(self) -> str:
        """The order as text."""
        return json.dumps({**vars(self), "selection": vars(self.selection)}, default=sorted)

    @classmethod
    def from_json(cls, text: str) -> Order:
        """The order that ``to_json`` wrote."""
        fields = json.loads(text)
        done = {name: frozenset(fields[name]) for name in ("groups_done", "cases_done")}
        return cls(**{**fields, **done, "selection": Selection.from_json(fields["selection"])})


def work(order: Order, tell: Tell) -> None:
    """Run what is ordered and tell of each case."""
    devices: Devices = Real() if order.profile is None else Simulated(profile_from(order.profile))
    if reason := devices.why_not():
        tell({"why_not": reason})
        return
    tell({"environment": devices.environment()})
    try:
        groups = order.selection.groups(order.suite)
    except ImportError as error:
        tell({"absent": in_words(error)})
        return
    left = (group for group in groups if group.name not in order.groups_done)
    if all(run_group(group, order, devices, tell) for group in left):
        tell({"end": True})


def run_group(group: Group, order: Order, devices: Devices, tell: Tell) -> bool:
    """Run the cases of a group, as long as the devices work; whether they still do."""
    tell({"group": group.name})
    try:
        cases = [case for case in group.cases() if order.selection.has(case.id)]
    except Exception as error:
        tell({"case": group.name, "outcome": {"lost": in_words(error)}})
        return True
    for case in cases:
        if case.id not in order.cases_done:
            tell({"case": case.id})
            tell({"case": case.id, "outcome": _run(case, devices)})
            if not devices.is_healthy():
                return False
    return True


def _run(case: Case, devices: Devices) -> dict[str, Any]:
    gc.collect()
    # What is left between two cases is there to stay: the next collection need not look at it.
    gc.freeze()
    try:
        with devices.for_case(case) as gpu:
            ended = outcome(case, gpu)
    except NotRunError as reason:
        ended = {"not_run": str(reason)}
    return {"digest": case.digest, **ended}


def main() -> None:
    """Take an order from standard input, and report on the pipe whose number is the argument."""
    warnings.simplefilter("ignore")
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as pipe:

        def tell(message: dict[str, Any]) -> None:
            pipe.write(json.dumps(message) + "\n")
            pipe.flush()

        work(Order.from_json(sys.stdin.read()), tell)


if __name__ == "__main__":
    main()
