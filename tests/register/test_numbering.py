"""The next free ID follows the scheme of the IDs that are there."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.conftest import Repository

from finding_tickets.errors import UsageError
from finding_tickets.register.new import free_ids


@pytest.mark.parametrize(
    ("ids", "batch", "agent", "expected"),
    [
        ([], None, None, "T-01"),
        ([], 7, "pytorch", "B7-PT-01"),
        ([], 7, "DRL", "B7-DRL-01"),
        # An agent that neither the register nor the tool knows gives its first letters.
        ([], 7, "security", "B7-SECU-01"),
        (["B7-PT-03", "B7-PT-01", "B7-DRL-09", "B8-PT-05"], 7, "pytorch", "B7-PT-04"),
        (["B7-PT-099"], 7, "pytorch", "B7-PT-100"),
        # Digits are those of the series, else those that the register's other IDs have.
        (["B7-PT-003"], 8, "pytorch", "B8-PT-001"),
        (["PERF-7"], None, None, "PERF-8"),
        (["B7-PT-03", "B7-DRL-09"], None, None, "T-01"),
        # The IDs of other schemes do not say what an agent is called.
        (["PERF-7"], 7, "pytorch", "B7-PT-1"),
        (["b7-pt-03"], 7, "pytorch", "B7-PT-04"),
    ],
)
def test_the_next_id(
    repository: Repository, ids: list[str], batch: int | None, agent: str | None, expected: str
) -> None:
    """The number after the highest of the series that batch and agent, or the register, name."""
    for ticket_id in ids:
        repository.ticket(ticket_id, rows="| **Agent** | `pytorch` |\n")
    assert expected == next(free_ids(repository.load().documents, batch=batch, agent=agent))


def test_the_code_of_an_agent_is_learnt(repository: Repository) -> None:
    """The IDs of an agent's tickets say what it is called, the more frequent spelling first."""
    for ticket_id in ["B1-SEC-01", "B2-SEC-01", "B2-SE-01"]:
        repository.ticket(ticket_id, rows="| **Agent** | `Security` |\n")
    assert "B7-SEC-01" == next(free_ids(repository.load().documents, batch=7, agent="security"))


def test_ids_go_on_after_the_first(repository: Repository) -> None:
    """Whoever finds an ID taken in the meantime takes the next."""
    repository.ticket("T-08")
    assert ["T-09", "T-10"] == list(islice(free_ids(repository.load().documents), 2))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tickets/T-12.md", "T-13"),
        ("elsewhere/t-12-what-it-is.md", "T-13"),
        ("tickets/T-012.md", "T-013"),
        # Other series, other words, the ID not in front, more digits than a number has.
        ("tickets/B7-T-12.md", "T-09"),
        ("tickets/T-12X.md", "T-09"),
        ("tickets/fix-T-12.md", "T-09"),
        (f"tickets/T-{'9' * 5000}.md", "T-09"),
    ],
)
def test_names_of_files_take_numbers(repository: Repository, path: str, expected: str) -> None:
    """A file that begins with an ID of the series takes it, though nothing of it was read."""
    repository.ticket("T-08")
    assert expected == next(free_ids(repository.load().documents, paths=[path]))


def test_the_name_of_a_document_takes_a_number_too(repository: Repository) -> None:
    """A ticket that states another ID than its file leaves neither of them free."""
    repository.ticket("T-03", path="tickets/T-05.md")
    assert "T-06" == next(free_ids(repository.load().documents))


def test_an_id_that_is_no_number(repository: Repository) -> None:
    """Five thousand digits, and digits of other scripts, are no number to count on from."""
    for ticket_id in (f"T-{'9' * 5000}", "T-\u0663", "T-\u00b2"):
        repository.ticket(ticket_id, path=f"tickets/{len(ticket_id)}{ord(ticket_id[-1])}.md")
    assert "T-01" == next(free_ids(repository.load().documents))


@pytest.mark.parametrize(("batch", "agent"), [(7, None), (None, "pytorch")])
def test_half_an_id_is_wrong_usage(batch: int | None, agent: str | None) -> None:
    """A batch needs an agent and the reverse."""
    with pytest.raises(UsageError, match="give both"):
        free_ids([], batch=batch, agent=agent)
