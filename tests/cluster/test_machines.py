"""Which machines are given anything, and what is said of others; a stand-in for Ray has their answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cluster.conftest import needs_ray

from finding_tickets.executors import machines as module
from finding_tickets.executors.machines import LABEL, Machines

needs_ray()
from ray import exceptions  # noqa: E402 - Ray is an extra

WANTED = {"finding-tickets": "1.0"}
_failed: Any = exceptions.RayTaskError
NOT_IMPORTED = _failed("ask", "failed to import", RuntimeError())


class Answers:
    """A cluster whose machines answer with a text, an error, or not at all where that is None."""

    exceptions = exceptions

    def __init__(self, **answers: str | Exception | None) -> None:
        self.answers = answers

    def nodes(self) -> list[dict[str, Any]]:
        """Machines of one processor, called as they are named."""
        return [
            {"NodeID": name, "NodeManagerHostname": name, "Alive": True, "Resources": {"CPU": 1.0}}
            for name in self.answers
        ]

    def remote(self, _: object) -> Answers:
        """A task is this itself."""
        return self

    def options(self, *, label_selector: dict[str, str], **_: object) -> Any:
        """A task whose references are the machines that it is for."""
        name = label_selector[LABEL]
        return type("Task", (), {"remote": staticmethod(lambda _: name)})

    def wait(self, references: list[str], **_: object) -> tuple[list[str], list[str]]:
        """Those that answer."""
        heard = [name for name in references if self.answers.get(name) is not None]
        return heard, [name for name in references if name not in heard]

    def get(self, reference: str) -> str:
        """The answer."""
        answer = self.answers[reference]
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("torch is 1.0 there and 2.0 here", "on other: torch is 1.0 there and 2.0 here"),
        (NOT_IMPORTED, "on other: there is no finding-tickets 1.0"),
        (exceptions.WorkerCrashedError(), "on other: it cannot be asked: WorkerCrashedError"),
    ],
)
def test_why_nothing_is_measured_on_a_machine(answer: str | Exception, said: str) -> None:
    """Other versions, no tool and a lost process are told apart; a sound machine is given all."""
    told: list[str] = []
    machines = Machines(Answers(sound="", other=answer), WANTED, told.append)
    assert [f"nothing is measured {said}"] == told
    assert (said,) == machines.reasons
    assert ["sound"] == list(machines.with_all({"CPU": 1.0}))


def test_a_machine_that_has_not_answered_is_given_nothing_until_it_has() -> None:
    """It is asked once, and meanwhile part of the reason why nothing can be measured."""
    told: list[str] = []
    cluster = Answers(late=None)
    machines = Machines(cluster, WANTED, told.append)
    assert ({}, 0) == (machines.with_all({}), machines.processors)
    assert ("on late: it has not said yet what it has",) == machines.reasons
    cluster.answers["late"] = ""
    machines.look()
    assert (["late"], 1) == (list(machines.with_all({})), machines.processors)
    assert not machines.reasons
    assert [] == told


def test_a_machine_that_may_still_answer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it has what is asked; one that was silent for long is not, nor one that is gone."""
    cluster = Answers(late=None)
    machines = Machines(cluster, WANTED, pytest.fail)
    assert [True, False] == [machines.may_have_all({"CPU": each}) for each in (1.0, 2.0)]
    with monkeypatch.context() as later:
        later.setattr(module, "_SILENT_SECONDS", 0.0)
        assert not machines.may_have_all({})
    cluster.answers = {}
    machines.look()
    assert not machines.may_have_all({})


def test_what_is_gone_counts_no_more() -> None:
    """Neither what it had, nor that it has not answered."""
    cluster = Answers(sound="", late=None)
    machines = Machines(cluster, WANTED, pytest.fail)
    assert machines.has_any({"sound"})
    cluster.answers = {"new": ""}
    machines.look()
    assert not machines.has_any({"sound"})
    assert ["new"] == list(machines.with_all({}))
    assert not machines.reasons
