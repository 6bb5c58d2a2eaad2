"""What is looked up beyond rows: texts, documents, evidence and verifiers."""

from __future__ import annotations

from tests.conftest import Repository
from tests.verify.conftest import add_with_few_points as add

from finding_tickets.cli.main import run
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.entries import entry_of
from finding_tickets.register.load import Register
from finding_tickets.register.query import select


def facts_of(repository: Repository, *, documents: bool = False) -> Register:
    """What is known of a repository as it is now, from its rows alone or from its documents."""
    register = repository.load()
    if documents:
        return register
    return Register(register.root, register.config, tuple(map(entry_of, register.documents)))


def test_the_whole_text_is_searched(repository: Repository) -> None:
    """Words of any section are found, in any case, over line breaks and with any white space between them."""
    repository.ticket("A-1", more="## Notes\r\n\r\nA Stream\r\n  that\twaits.\r\n")
    repository.ticket("A-2")
    facts = facts_of(repository)
    assert ["A-1"] == [row.id for row in select('"a stream that WAITS."', facts)]
    assert [] == select('"stream waits"', facts)
    assert ["A-1", "A-2"] == [row.id for row in select("waits", facts)]


def test_verdicts(repository: Repository) -> None:
    """What was measured counts as long as nothing has changed since; without evidence it is unverified."""
    for ticket in ("A-1", "B-1", "C-1"):
        add(repository, ticket)
    assert 0 == run(["verify", "A-1", "B-1", "--root", str(repository.root)])
    repository.write("fixes/b_1/fix.py", "def check(tensors):\n    return None\n")
    expected = {"A-1": Verdict.VERIFIED, "B-1": Verdict.STALE, "C-1": Verdict.UNVERIFIED}
    for documents in (True, False):
        facts = facts_of(repository, documents=documents)
        assert expected == {row.id: facts.measured(row).verdict for row in facts.entries}
        assert ["B-1"] == [row.id for row in select("verdict:stale", facts)]


def test_a_verifier_by_name_or_by_convention(repository: Repository) -> None:
    """A document has a verifier that it names, or else one in the usual place."""
    repository.ticket("A-1", more="## Remediation\n\n```yaml\nverifier: elsewhere.py\n```\n")
    repository.ticket("A-2")
    repository.ticket("A-3")
    repository.write("verifiers/a_2.py", "")
    facts = facts_of(repository)
    assert ["A-1", "A-2"] == [row.id for row in select("has:verifier", facts)]
    assert ["A-3"] == [row.id for row in select("no:verifier", facts)]
