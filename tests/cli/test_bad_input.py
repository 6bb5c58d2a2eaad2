"""Whatever a file contains, each command says where it is wrong, and does the rest without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ran
    from tests.conftest import Repository

Tickets = Callable[..., "Ran"]
HEAD = "# Finding Ticket: Bad\n\n**Ticket ID:** B1-PT-02\n"
BAD: dict[str, tuple[str | bytes, int]] = {
    "empty": (b"", 1),
    "binary": (b"\x89PNG\r\n\x00\x00", 2),
    "Latin-1": ("# Größe\n".encode("latin-1"), 1),
    "a row with too many cells": (f"{HEAD}\n| A | B |\n|---|---|\n| 1 | 2 | 3 |\n", 7),
    "YAML with an error": (f"{HEAD}\n## Remediation\n\n```yaml\nclaims: [1\n```\n", 8),
    "an unknown key": (f"{HEAD}\n## Remediation\n\n```yaml\nverifier: a.py\nclams: {{}}\n```\n", 9),
    "a path that leaves the repository": (f"{HEAD}\n## Remediation\n\n```yaml\nverifier: ../a.py\n```\n", 8),
    "a claim that does not parse": (
        f"{HEAD}\n## Remediation\n\n```yaml\nclaims:\n  found:\n    syncs: 4*\n```\n",
        10,
    ),
    "a severity that there is not": (f"{HEAD}**Severity:** urgent\n", 4),
}
ONLY_LINT = {"a claim that does not parse"}
"""What is no mistake of the document's form: to list it takes no look at what it claims."""


@pytest.mark.parametrize("command", ["list", "show", "lint", "report"])
@pytest.mark.parametrize("name", BAD)
def test_bad_files(tickets: Tickets, repository: Repository, command: str, name: str) -> None:
    """The place is named, the sound ticket is still there, and the exit code is a documented one."""
    content, line = BAD[name]
    repository.ticket()
    repository.write("tickets/B1-PT-02.md", content)
    ids = ["B1-PT-01", "B1-PT-02"] if command == "show" else []
    ran = tickets(command, *ids)
    assert ran.code in {0, 1, 2, 4}
    if command != "lint":
        assert "B1-PT-01" in ran.out
    if command == "lint" or name not in ONLY_LINT:
        assert f"B1-PT-02.md:{line}: " in ran.out + ran.err or "'B1-PT-02'" in ran.err


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tickets.toml", "tikets = 'x'\n", "'tikets'"),
        ("tickets.toml", "tickets = 4\n", "tickets"),
        ("pyproject.toml", "[tool.tickets\n", "pyproject.toml"),
    ],
)
def test_a_wrong_configuration_names_file_and_key(
    tickets: Tickets, repository: Repository, file: str, content: str, message: str
) -> None:
    """Nothing is guessed where the configuration is wrong."""
    repository.write(file, content)
    ran = tickets("list")
    assert (4, "") == (ran.code, ran.out)
    assert file in ran.err
    assert message in ran.err
