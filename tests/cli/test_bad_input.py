"""Whatever a file contains, each command says where it is wrong, and does the rest without a traceback."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Tickets
from tests.conftest import Repository

from finding_tickets.errors import ExitCode

HEAD = "# Finding Ticket: Bad\n\n**Ticket ID:** B1-PT-02\n"
# The content, the line and, with lint, the exit code: 4 for bad data, 0 for what is only misspelt.
BAD: dict[str, tuple[str | bytes, int, int]] = {
    "empty": (b"", 1, 4),
    "binary": (b"\x89PNG\r\n\x00\x00", 2, 4),
    "Latin-1": ("# Größe\n".encode("latin-1"), 1, 4),
    "a row with too many cells": (f"{HEAD}\n| A | B |\n|---|---|\n| 1 | 2 | 3 |\n", 7, 0),
    "a table without a delimiter row": (f"{HEAD}\n| A | B |\n| 1 | 2 |\n", 5, 0),
    "YAML with an error": (f"{HEAD}\n## Remediation\n\n```yaml\nclaims: [1\n```\n", 8, 4),
    "an unknown key": (f"{HEAD}\n## Remediation\n\n```yaml\nverifier: a.py\nclams: {{}}\n```\n", 9, 4),
    "a path that leaves the repository": (
        f"{HEAD}\n## Remediation\n\n```yaml\nverifier: ../a.py\n```\n",
        8,
        4,
    ),
    "a claim that does not parse": (
        f"{HEAD}\n## Remediation\n\n```yaml\nclaims:\n  found:\n    syncs: 4*\n```\n",
        10,
        4,
    ),
    "a merge that is not finished": (
        f"{HEAD}<<<<<<< HEAD\n**Severity:** P1\n=======\n**Severity:** P2\n>>>>>>> theirs\n",
        4,
        4,
    ),
    "cut off between two sections": (f"{HEAD}**Severity:** P1\n", 1, 0),
    "cut off within a character": (HEAD.encode() + "\n\u2014".encode()[:-1], 5, 4),
    "cut off within a fence": (f"{HEAD}\n```python\nx = ", 5, 0),
    "cut off within a comment": (f"{HEAD}\n<!-- later\n\n## Summary\n", 5, 0),
    "cut off within YAML": (f"{HEAD}\n## Remediation\n\n```yaml\nclaims: {{found: {{syn", 8, 4),
    "line ends of two kinds": (f"{HEAD}**Severity:** P1\r\n", 4, 0),
    "a NUL byte in text": (f"{HEAD}\na\0b\n", 5, 4),
    "ten thousand cells in a row": (f"{HEAD}\n| A | B |\n|---|---|\n|{' x |' * 10_000}\n", 7, 0),
    "twenty thousand quotes deep": (f"{HEAD}\n{'>' * 20_000} x\n", 5, 0),
    "twenty thousand lists deep": (f"{HEAD}\n{'- ' * 20_000}x\n", 5, 0),
    "a severity that there is not": (f"{HEAD}**Severity:** urgent\n", 4, 0),
}
ONLY_LINT = {"a claim that does not parse", "cut off between two sections"}
"""What is no mistake of the document's form: to list it takes no look at what it claims, or does not say."""
SHALLOW = [pytest.param(name) for name in BAD if not name.endswith("deep")]
EACH = [*SHALLOW, *(pytest.param(name, marks=pytest.mark.slow) for name in BAD if name.endswith("deep"))]
REMEDIATIONS = {name for name, (content, _, _) in BAD.items() if "## Remediation" in str(content)}
"""What keeps a ticket from being measured, and from nothing else."""
NO_DOCUMENT = {"empty", "binary", "Latin-1", "cut off within a character", "a NUL byte in text"}
"""What has no ID, so that ``show`` cannot find it."""


@pytest.mark.parametrize(
    ("command", "name"),
    [
        # To read what is deep takes seconds, and all commands read alike.
        pytest.param(command, *name.values, marks=name.marks)
        for command in ("list", "lint", "report")
        for name in (EACH if command == "lint" else SHALLOW)
    ],
)
def test_bad_files(tickets: Tickets, repository: Repository, command: str, name: str) -> None:
    """The sound ticket is still there, and the exit code says how bad it is; lint names the place.

    A list and a report count the problem. A Remediation that cannot be read keeps neither from its answer.
    """
    content, line, code = BAD[name]
    repository.ticket()
    repository.write("tickets/B1-PT-02.md", content)
    ran = tickets(command)
    if command == "lint":
        assert (code, True) == (ran.code, f"tickets/B1-PT-02.md:{line}:" in ran.out)
        return
    assert (0 if name in ONLY_LINT | REMEDIATIONS else code) == ran.code
    assert "B1-PT-01" in ran.out
    assert (name not in ONLY_LINT) is ("lint --root" in ran.err)


@pytest.mark.parametrize("name", SHALLOW)
def test_bad_files_are_shown_as_far_as_they_are_understood(
    tickets: Tickets, repository: Repository, name: str
) -> None:
    """A file without an ID is not found (2); the others are shown with all that was not understood."""
    content, _, code = BAD[name]
    repository.ticket()
    repository.write("tickets/B1-PT-02.md", content)
    ran = tickets("show", "B1-PT-01", "B1-PT-02")
    assert "B1-PT-01" in ran.out
    if name in NO_DOCUMENT:
        assert (2, True) == (ran.code, "'B1-PT-02'" in ran.err)
    else:
        assert (0 if name in ONLY_LINT | REMEDIATIONS else code) == ran.code
        assert (name not in ONLY_LINT) is ("prints" in ran.err)


@pytest.mark.parametrize(
    "command", [["list"], ["list", "has:verifier"], ["report"], ["graph"], ["show", "B1-PT-01"]]
)
def test_an_id_may_be_any_text(tickets: Tickets, repository: Repository, command: list[str]) -> None:
    """IDs that are no numbers, no words or no names of files are warnings, and in nobody's way."""
    repository.ticket()
    words = ["\u00b2", "../../up", "/etc", "a/b", "-x", "*", "\u2713", "\x01", "'"]
    ids = ["9" * 5000, "A-" + "9" * 5000, *words]
    for number, ticket_id in enumerate(ids):
        repository.write(f"tickets/{number}.md", f"# Finding Ticket: x\n\n**Ticket ID:** {ticket_id}\n")
    ran = tickets(*command)
    assert 0 == ran.code
    if "show" not in command:
        # Each but the second, which is what an ID looks like, as long as it is.
        assert f"{len(ids) - 1} problems; " in ran.err


@pytest.mark.parametrize("key", ["tickets", "evidence", "templates"])
@pytest.mark.parametrize(
    "value", ["a\\u0000b", "", "/etc", "..", "~", "a\\nb", "\\u202e", ".git/hooks", "a" * 300, "a/" * 2000]
)
def test_a_path_that_is_none_is_bad_data(
    repository: Repository, tickets: Tickets, key: str, value: str
) -> None:
    """Whatever stands in its place, the message names file and key, and nothing is a bug of the tool."""
    repository.write("tickets.toml", f'{key} = "{value}"\n')
    ran = tickets("list")
    assert (ExitCode.BAD_DATA, True) == (ran.code, f"tickets.toml: {key}: " in ran.err)
    assert "\0" not in ran.err


@pytest.mark.parametrize("path", ["a\\0b.py", "a" * 300 + ".py", "a/" * 2000 + "b.py", "a\\nb.py"])
@pytest.mark.parametrize("block", ["verifier: {}", "variants: {{found: {}}}", "run: {}"])
def test_a_file_that_no_system_has(repository: Repository, tickets: Tickets, block: str, path: str) -> None:
    """A path in a Remediation that cannot be opened is bad data, also for a command that would open it."""
    name = f'"{path}:f"' if "variants" in block else f'"{path}"'
    repository.ticket("A-1", more=f"## Remediation\n\n```yaml\n{block.format(name)}\n```\n")
    for command in (["lint"], ["verify", "A-1"]):
        assert ExitCode.BAD_DATA == tickets(*command).code
