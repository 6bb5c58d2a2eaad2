"""The next free ID follows the scheme of the IDs that are there."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from finding_tickets.errors import UsageError
from finding_tickets.register.numbering import free_ids

if TYPE_CHECKING:
    from tests.conftest import Repository


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
    assert expected == next(free_ids(repository.load().documents, batch, agent))


def test_the_code_of_an_agent_is_learnt(repository: Repository) -> None:
    """The IDs of an agent's tickets say what it is called, the more frequent spelling first."""
    for ticket_id in ["B1-SEC-01", "B2-SEC-01", "B2-SE-01"]:
        repository.ticket(ticket_id, rows="| **Agent** | `Security` |\n")
    assert "B7-SEC-01" == next(free_ids(repository.load().documents, 7, "security"))


def test_ids_go_on_after_the_first(repository: Repository) -> None:
    """Whoever finds an ID taken in the meantime takes the next."""
    repository.ticket("T-08")
    assert ["T-09", "T-10"] == list(islice(free_ids(repository.load().documents), 2))


@pytest.mark.parametrize(("batch", "agent"), [(7, None), (None, "pytorch")])
def test_half_an_id_is_wrong_usage(batch: int | None, agent: str | None) -> None:
    """A batch needs an agent and the reverse."""
    with pytest.raises(UsageError, match="give both"):
        free_ids([], batch, agent)
