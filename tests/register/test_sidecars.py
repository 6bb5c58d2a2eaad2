"""A remediation in a file beside its ticket is read like a section, and every problem names its lines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest
from tests.lint.conftest import lint

from finding_tickets.cli.main import run
from finding_tickets.documents.reading import Document
from finding_tickets.model.ticket import Problem
from finding_tickets.model.verification import Evidence, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.load import Register, load
from finding_tickets.register.staleness import own_torch
from finding_tickets.verify.evidence import collect_inputs, file_inputs, write
from finding_tickets.verify.plan import plan

if TYPE_CHECKING:
    from tests.conftest import Repository


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


def test_its_bytes_are_an_input_of_the_evidence(repository: Repository, measured: Measured) -> None:
    """The digest of the remediation is that of the whole file."""
    document = one(measured(TEXT))
    planned = plan(document, repository.root)
    assert planned is not None
    given = collect_inputs(planned, document, _nothing(), file_inputs((), planned))
    (digest,) = (each.value for each in given if each.name == "Remediation")
    assert hashlib.sha256(TEXT.encode()).hexdigest() == digest


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


def test_bytes_that_are_no_text(repository: Repository, measured: Measured) -> None:
    """A byte that is not UTF-8 is named with its line."""
    measured(TEXT)
    repository.write(SIDECAR, b"decision: keep\n# caf\xe9\n")
    assert [("remediation-yaml", SIDECAR, 2)] == places(repository.load().problems)


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


def test_rows_know_its_verifier(repository: Repository, measured: Measured) -> None:
    """Lists find the verifier that it names, also when it changes and the ticket does not."""
    measured(TEXT)
    assert ["verifiers/v.py"] == [row.verifier for row in load(repository.root).entries]
    repository.write(SIDECAR, TEXT.replace("v.py", "w.py"))
    assert ["verifiers/w.py"] == [row.verifier for row in load(repository.root).entries]


def test_closing_as_fixed_counts_its_evidence(
    repository: Repository, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    """A verdict of claims that stand beside the ticket is as good as one of claims in it."""
    document = one(measured(TEXT))
    repository.ticket(status="open")
    planned = plan(document, repository.root)
    assert planned is not None
    done = _nothing().model_copy(update={"verdict": Verdict.VERIFIED, "torch": own_torch()})
    write(
        Evidence(inputs=collect_inputs(planned, document, done, file_inputs((), planned)), verification=done),
        repository.root,
        "evidence",
    )
    assert 0 == run(["close", "--root", str(repository.root), "B1-PT-01", "--as", "fixed"])
    assert "B1-PT-01: closed as fixed" in capsys.readouterr().err
    repository.write(SIDECAR, TEXT.replace("4*n", "3*n"))
    repository.ticket(status="open")
    assert 1 == run(["close", "--root", str(repository.root), "B1-PT-01", "--as", "fixed"])
    # The evidence does not count: the ticket is measured again, and there is nothing to measure it by.
    assert "B1-PT-01 is inconclusive, not verified" in capsys.readouterr().err


def _nothing() -> Verification:
    return Verification(
        ticket="B1-PT-01",
        verdict=Verdict.INCONCLUSIVE,
        reason="",
        meter="simulated",
        torch="2.13.0",
        device="h200-cuda13",
        sweep=(),
        variants={},
        claims=(),
    )


def test_verify_refuses_what_was_not_understood(
    repository: Repository, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims that may be incomplete are not checked; the message names the file and its line."""
    measured(TEXT.replace("4*n", "4: n"))
    assert 4 == run(["verify", "--root", str(repository.root), "B1-PT-01"])
    said = capsys.readouterr().err
    assert f"B1-PT-01: not measured: {SIDECAR}:6:" in said
