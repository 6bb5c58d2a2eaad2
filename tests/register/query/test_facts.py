"""What is looked up beyond rows: texts, documents, evidence and verifiers."""

from __future__ import annotations

from tests.conftest import Repository

from finding_tickets.register.entries import entry_of
from finding_tickets.register.load import Register
from finding_tickets.register.query import select


def facts_of(repository: Repository) -> Register:
    """What is known of a repository as it is now, from its rows alone."""
    register = repository.load()
    return Register(register.root, register.config, tuple(map(entry_of, register.documents)))


def test_the_whole_text_is_searched(repository: Repository) -> None:
    """Words of any section are found, in any case, over line breaks and with any white space between them."""
    repository.ticket("A-1", more="## Notes\r\n\r\nA Stream\r\n  that\twaits.\r\n")
    repository.ticket("A-2")
    facts = facts_of(repository)
    assert ["A-1"] == [row.id for row in select('"a stream that WAITS."', facts)]
    assert [] == select('"stream waits"', facts)
    assert ["A-1", "A-2"] == [row.id for row in select("waits", facts)]


def test_a_verifier_by_name_or_by_convention(repository: Repository) -> None:
    """A document has a verifier that it names, or else one in the usual place."""
    repository.ticket("A-1", more="## Remediation\n\n```yaml\nverifier: elsewhere.py\n```\n")
    repository.ticket("A-2")
    repository.ticket("A-3")
    repository.write("verifiers/a_2.py", "")
    facts = facts_of(repository)
    assert ["A-1", "A-2"] == [row.id for row in select("has:verifier", facts)]
    assert ["A-3"] == [row.id for row in select("no:verifier", facts)]
