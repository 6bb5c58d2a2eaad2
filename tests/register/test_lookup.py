"""Documents are found by ID in any case, and a misspelt ID gets suggestions."""

from __future__ import annotations

import pytest
from tests.conftest import Repository

from finding_tickets.errors import BadDataError, ExitCode, UsageError


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("b1-pt", "did you mean B1-PT-02, B1-PT-03?"),
        ("B1-TP-02", "did you mean B1-PT-02"),
        ("B1PT03", "did you mean B1-PT-03"),
        ("zzz", "tickets list shows them all"),
        ("", "tickets list shows them all"),
    ],
)
def test_unknown(repository: Repository, written: str, hint: str) -> None:
    """IDs that begin alike are suggested, else those that look alike, else the list."""
    for name in ("B1-PT-02", "B1-PT-03", "B7-CR-11"):
        repository.ticket(name)
    with pytest.raises(UsageError) as caught:
        repository.load().find(written)
    assert (caught.value.hint or "").startswith(hint)
    assert ExitCode.USAGE == caught.value.exit_code


def test_two_of_the_same(repository: Repository) -> None:
    """An ID of two documents is bad data; the message names both files."""
    repository.ticket("A-1", path="tickets/one.md")
    repository.ticket("a-1", path="tickets/two.md")
    with pytest.raises(
        BadDataError, match=r"A-1 is the ID of several documents: tickets/one\.md, tickets/two\.md"
    ) as caught:
        repository.load().find("A-1")
    # What the hint says is so.
    assert "by its path" in (caught.value.hint or "")
    assert "a-1" == repository.load().find("tickets/two.md").id.raw.strip("`")
