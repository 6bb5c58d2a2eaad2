"""The states of a ticket and the ways between them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from finding_tickets.errors import UsageError
from finding_tickets.model.vocabulary import UNSETTLED, Status
from finding_tickets.register.disposition import TRANSITIONS, check_transition

PAGE = (Path(__file__).parents[2] / "docs/editing.md").read_text(encoding="utf-8")


def test_the_page_shows_every_transition() -> None:
    """The table of docs/editing.md is the declared machine, row by row."""
    _, _, below = PAGE.partition("## States\n")
    header, _, *rows = re.findall(r"^\|(.*)\|$", below.partition("\n## ")[0], re.MULTILINE)
    commands = re.findall(r"`(\w+)`", header)
    shown = {}
    for row in rows:
        state, *cells = row.split("|")
        ways = zip(commands, (tuple(re.findall(r"`([\w-]+)`", cell)) for cell in cells), strict=True)
        shown[state.strip().strip("`")] = {command: statuses for command, statuses in ways if statuses}
    declared = {
        str(status or "not stated"): {name: tuple(map(str, following)) for name, following in ways.items()}
        for status, ways in TRANSITIONS.items()
    }
    assert declared == shown


def test_every_status_has_a_way_out() -> None:
    """No ticket is stuck; one that is closed can only be opened again."""
    assert {None, *Status} == set(TRANSITIONS)
    assert all(TRANSITIONS.values())
    for status in set(Status) - UNSETTLED:
        assert {"set": (Status.OPEN,)} == TRANSITIONS[status]


@pytest.mark.parametrize(("status", "command"), [(Status.OPEN, "set"), (Status.FIXED, "close")])
def test_what_is_so_already_is_said_so(status: Status, command: str) -> None:
    """Nothing leads from a status to itself, which is no way to put it."""
    with pytest.raises(UsageError) as refused:
        check_transition(status, command, status)
    assert f"it is {status} already" == refused.value.message
    assert "tickets set status=" in str(refused.value.hint)
