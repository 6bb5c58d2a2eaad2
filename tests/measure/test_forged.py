"""Code of a ticket can write what it likes where its process answers: what is no answer becomes a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.errors import UnreachableError, UsageError
from finding_tickets.measure.processes.isolation import Isolation, K, Task, TaskOutcome
from finding_tickets.verify.probing import ProbeRequest, probe


class Answers(Isolation):
    """Stands for processes that all answer the same."""

    def __init__(self, answer: Any) -> None:
        super().__init__(at_once=False)
        self._answer = answer

    def run(self, tasks: Mapping[K, Task]) -> Iterator[tuple[K, TaskOutcome]]:
        """Answer every task, without a process."""
        yield from ((name, TaskOutcome(value=self._answer)) for name in list(tasks))


@pytest.mark.parametrize("answer", [None, 5, "text", ["wrong"], {"points": "none"}])
def test_a_target_that_answers_for_itself_is_not_measured(answer: Any) -> None:
    """Whatever its process writes, the probe ends with a reason."""
    wanted = ProbeRequest(target=__file__, root=Path(__file__).parent, timeout=1.0, memory=1024**3)
    said = "not measured: invalid result from the worker: "
    with Answers(answer) as machine, pytest.raises(UnreachableError, match=said):
        probe(wanted, machine)


def test_a_target_that_says_what_is_wrong_is_quoted() -> None:
    """It may not be a text."""
    wanted = ProbeRequest(target=__file__, root=Path(__file__).parent, timeout=1.0, memory=1024**3)
    with Answers({"wrong": 5}) as machine, pytest.raises(UsageError, match=r"^5"):
        probe(wanted, machine)
