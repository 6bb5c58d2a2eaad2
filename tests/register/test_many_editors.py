"""Twenty processes edit the same tickets at once: what succeeded is in the file, what did not says why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Repository

from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Status
from finding_tickets.register.disposition import status_of

EDITORS = 20
PROGRAM = Path(__file__).with_name("many_editors.py")
CHECKLIST = "\n".join(f"- [ ] item {number}" for number in range(1, EDITORS))


def run(repository: Repository, lines: list[list[str]]) -> list[tuple[int, str]]:
    """How command lines ended that were all run at once: the exit code and what was printed."""
    rooted = [[line[0], "--root", str(repository.root), *line[1:]] for line in lines]
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], input=json.dumps(rooted), capture_output=True, text=True, check=True
    )
    return [(code, said) for code, said in json.loads(done.stdout)]


def ticket(repository: Repository, ticket_id: str) -> Ticket:
    """A ticket as it is now."""
    found = repository.load().find(ticket_id)
    assert isinstance(found, Ticket)
    return found


@pytest.mark.slow
def test_edits_of_different_things_all_happen(repository: Repository) -> None:
    """Ten ticks, nine rows of the metadata and a title: none of them overwrites another."""
    repository.ticket(status="open", more=f"## Verification Checklist\n\n{CHECKLIST}")
    keys = ["severity=P1", "batch=4", "agent=drl", "domain=a,b", "assignee=kim", "created=2030-01-01"]
    keys += ["updated=2030-01-02", "status=investigating", "code-repository=elsewhere"]
    lines = [
        *(["tick", "B1-PT-01", str(number)] for number in range(2, 12)),
        *(["set", "B1-PT-01", key] for key in keys),
        ["set", "B1-PT-01", "title=It copies"],
    ]
    assert EDITORS == len(lines)
    assert [0] * EDITORS == [code for code, _ in run(repository, lines)]
    found = ticket(repository, "B1-PT-01")
    # The first of the checklist's items stands in the ticket's own section, before those of this test.
    assert [False] + [True] * 10 + [False] * 9 == [item.done for item in found.checklist]
    values = {label: text.raw.strip("`") for label, text in found.metadata.items()}
    assert {"P1", "4", "drl", "a`, `b", "kim", "2030-01-01", "investigating", "elsewhere"} <= set(
        values.values()
    )
    assert "It copies" == found.title.value


@pytest.mark.slow
def test_of_edits_that_exclude_each_other_one_happens(repository: Repository) -> None:
    """A ticket is closed once; the others are told what state they found it in."""
    repository.ticket(status="open")
    ends = [
        ["close", "B1-PT-01", "--as", "wont-fix", "--reason", f"by {number}"] for number in range(EDITORS)
    ]
    results = run(repository, ends)
    (winner,) = [number for number, (code, _) in enumerate(results) if code == 0]
    refused = {said for code, said in results if code != 0}
    assert [2] * (EDITORS - 1) == [code for code, _ in results if code != 0]
    hint = "tickets set status=open"
    assert {f"error: tickets/B1-PT-01.md: it is wont-fix already ({hint})\n"} == refused
    found = ticket(repository, "B1-PT-01")
    assert Status.WONT_FIX is status_of(found)
    assert found.resolution is not None
    assert f"**Reason:** by {winner}" == found.resolution.raw.splitlines()[-1]


@pytest.mark.slow
def test_edits_of_two_files_do_not_wait_for_each_other_for_ever(repository: Repository) -> None:
    """Half of them name the two tickets the other way round; each ticket has all that it was told."""
    pair = ["B1-PT-20", "B1-PT-21"]
    for name in pair:
        repository.ticket(name)
    lines = []
    for number in range(EDITORS):
        ordered = pair if number % 2 else pair[::-1]
        lines.append(["set", *ordered, f"domain=+part{number}"])
    assert [0] * EDITORS == [code for code, _ in run(repository, lines)]
    told = {f"part{number}" for number in range(EDITORS)}
    for name in pair:
        assert told <= {each.value for each in ticket(repository, name).domains}
