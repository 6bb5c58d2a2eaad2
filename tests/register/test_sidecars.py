"""A remediation in a file beside its ticket is read like a section, and every problem names its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from tests.conftest import Repository
from tests.lint.conftest import lint

from finding_tickets.cli.main import run
from finding_tickets.documents.reading import Document
from finding_tickets.model.ticket import Problem
from finding_tickets.register.load import Register, load

SIDECAR = "tickets/B1-PT-01.remediation.yaml"
SECTION = "## Remediation\n\n```yaml\ndecision: keep\n```\n"
TEXT = """\
verifier: verifiers/v.py
variants:
  found: code.py:slow
claims:
  found:
    syncs: 4*n
checklist:
  - {item: Count the waits, claims: [found.syncs]}
"""

Measured = Callable[[str], "Register"]


@pytest.fixture
def measured(repository: Repository) -> Measured:
    """A register with a ticket, a verifier, and a sidecar of the given text."""

    def make(text: str) -> Register:
        repository.ticket()
        repository.write("verifiers/v.py", "")
        repository.write(SIDECAR, text)
        return repository.load()

    return make


def one(register: Register) -> Document:
    """The only document."""
    (document,) = register.documents
    return document


def places(problems: Iterable[Problem]) -> list[tuple[str, str, int]]:
    """Rule, file and line of every problem."""
    return [(problem.rule, problem.file, problem.line) for problem in problems]


@pytest.mark.parametrize("name", ["B1-PT-01", "b1-pt-01"])
def test_a_sidecar_is_the_remediation(repository: Repository, measured: Measured, name: str) -> None:
    """It says what the section would, from its first line to its last; lint has nothing to add."""
    measured(TEXT)
    (repository.root / SIDECAR).rename(repository.root / f"tickets/{name}.remediation.yaml")
    register = repository.load()
    remediation = one(register).remediation
    assert remediation is not None
    assert ("verifiers/v.py", ["found.syncs"], 6) == (
        remediation.verifier,
        [claim.id for claim in remediation.claims],
        remediation.claims[0].line,
    )
    assert f"tickets/{name}.remediation.yaml" == remediation.path
    assert (0, len(TEXT), 1) == (remediation.span.start, remediation.span.end, remediation.span.line)
    assert () == lint(register)


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        (TEXT.replace("4*n", "4*"), "claim-syntax", 6),
        (TEXT.replace("syncs:", "sinks:"), "unknown-metric", 6),
        (TEXT.replace("code.py:slow", "code.py:fast"), "missing-variant", 3),
        (TEXT.replace("verifiers/v.py", "verifiers/w.py"), "missing-verifier", 1),
        (TEXT.replace("decision", "verdict") + "verdict: keep\n", "remediation-key", 9),
        (TEXT.replace("4*n", "4: n"), "remediation-yaml", 6),
        ("", "remediation-yaml", 1),
        ("# nothing\n", "remediation-yaml", 1),
    ],
)
def test_problems_name_its_lines(measured: Measured, text: str, rule: str, line: int) -> None:
    """Lint points into the sidecar, once."""
    found = [place for place in places(lint(measured(text))) if place[1] == SIDECAR]
    assert (rule, SIDECAR, line) in found
    assert len(found) == len(set(found))


def test_what_is_missing_in_the_ticket_is_said_there(measured: Measured) -> None:
    """An item of the checklist that the sidecar does not answer stands in the ticket."""
    found = places(lint(measured(TEXT.partition("checklist")[0])))
    assert [("unanswered-item", "tickets/B1-PT-01.md")] == [place[:2] for place in found]


def test_a_section_and_a_sidecar(repository: Repository, measured: Measured) -> None:
    """Nobody knows which of the two counts: an error in the ticket, where its section is."""
    measured(TEXT)
    text = repository.ticket(more=SECTION).read_text()
    line = text.partition("```yaml")[0].count("\n") + 1
    register = repository.load()
    assert [("remediation-sidecar", "tickets/B1-PT-01.md", line)] == places(register.problems)
    assert SIDECAR in register.problems[0].message


def test_a_sidecar_without_a_ticket(repository: Repository) -> None:
    """Its claims would be checked by nobody: an error, in reading and in listing."""
    repository.ticket()
    repository.write("tickets/more/B1-PT-01.remediation.yaml", TEXT)
    expected = [("remediation-sidecar", "tickets/more/B1-PT-01.remediation.yaml", 1)]
    assert expected == places(repository.load().problems)
    assert expected == places(load(repository.root).problems)


def test_verify_refuses_what_was_not_understood(
    repository: Repository, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims that may be incomplete are not checked; the message names the file and its line."""
    measured(TEXT.replace("4*n", "4: n"))
    assert 4 == run(["verify", "--root", str(repository.root), "B1-PT-01"])
    said = capsys.readouterr().err
    assert f"B1-PT-01: not measured: {SIDECAR}:6:" in said
