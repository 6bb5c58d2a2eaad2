"""The restated documents hold every fact of the documents they restate, in other words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Artifact, ImplementationReview, Ticket

ROOT = Path(__file__).parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
FINDINGS = ["B7-PT-02.md", "B7-PT-03.md", "B3-CR-05.md", "B1-PT-02.md"]
REVIEW = ("task-5-implementation-review.md", "reviews/task-5-foreach-norm.md")
PAIRS = [*((name, name) for name in FINDINGS), REVIEW]
NUMBER = re.compile(r"\d[\w.,]*(?<![.,])")
CODE_OR_QUOTED = re.compile(r"`[^`]+`|\"[^\"]+\"|/[\w/.-]+|\|")
GROWTH = re.compile(r"O\([^)]*\)")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"#.*")
CALL = re.compile(r"(torch(?:\.\w+)+|(?<=\.)\w+)(?=\()")
WORD = re.compile(r"[\w'.()]+")

pytestmark = pytest.mark.skipif(
    not SEEDS.is_dir(), reason="the documents to compare with are not in ../shared/seeds"
)


def read(path: Path) -> Any:
    """The record of a document, which must be readable without an error."""
    document, problems = read_document(path.read_bytes(), path.name)
    assert [] == [str(problem) for problem in problems if problem.level == "error"]
    return document


def both(seed: str, restated: str) -> tuple[Any, Any]:
    """The records of a document and of what restates it."""
    return read(SEEDS / seed), read(ROOT / "tickets" / restated)


def value(field: Any) -> Any:
    """The value of a field that may be missing."""
    return None if field is None else field.value


def in_code(artifact: Artifact) -> str:
    """The name of an artifact that is written as code; what is described in words has other words here."""
    return artifact.name if f"`{artifact.name}`" in artifact.raw else ""


def figures(text: str) -> list[str]:
    """The numbers and growth classes of a text, in their order."""
    return NUMBER.findall(text) + GROWTH.findall(text)


def torch_calls(code: str) -> list[str]:
    """What a piece of code calls of torch, functions and methods of tensors, in the order of the text."""
    called = CALL.findall(COMMENT.sub("", code))
    return [name for name in called if name.startswith("torch.") or hasattr(torch.Tensor, name)]


def torch_calls_of_blocks(markdown: str) -> list[tuple[str, list[str]]]:
    """The language and the torch calls of every fenced block, save for the remediation's YAML."""
    blocks = FENCED.findall(markdown)
    return [(language, torch_calls(code)) for language, code in blocks if language != "yaml"]


TICKET_FACTS: dict[str, Callable[[Ticket], Any]] = {
    "id": lambda t: t.id.value,
    "severity": lambda t: value(t.severity),
    "status": lambda t: value(t.status),
    "outcome": lambda t: value(t.outcome),
    "batch": lambda t: value(t.batch),
    "agent": lambda t: value(t.agent),
    "domains": lambda t: [domain.value for domain in t.domains],
    "assignee": lambda t: value(t.assignee),
    "dates": lambda t: (value(t.created), value(t.updated)),
    "locations": lambda t: [(place.file, place.lines, place.symbol) for place in t.locations],
    "categories": lambda t: [(category.name, category.ticked) for category in t.categories],
    "code": lambda t: [(block.language, block.location, torch_calls(block.code)) for block in t.evidence],
    "recommended fix": lambda t: t.recommended_fix and torch_calls_of_blocks(t.recommended_fix.raw),
    "checklist": lambda t: [item.done for item in t.checklist],
    "related": lambda t: [(relation.id, relation.relationship) for relation in t.related],
    "reviews": lambda t: [(value(review.reviewer), review.opinion) for review in t.reviews],
    "reports": lambda t: [(report.file, report.section) for report in t.reports],
}
REVIEW_FACTS: dict[str, Callable[[ImplementationReview], Any]] = {
    "id": lambda r: r.id.value,
    "reviewer": lambda r: value(r.reviewer),
    "date": lambda r: value(r.date),
    "commits": lambda r: r.commits and (r.commits.base, r.commits.head),
    "plan": lambda r: value(r.plan),
    "verdict": lambda r: value(r.verdict),
    "requirements": lambda r: [requirement.met for requirement in r.requirements],
    "issues": lambda r: [(issue.severity, issue.id, list(issue.details)) for issue in r.issues],
    "issue counts": lambda r: r.issue_counts,
    "scores": lambda r: [(score.name, score.value, score.out_of) for score in r.scores],
    "performance claims": lambda r: [
        (claim.text.partition(":")[0], figures(claim.text)) for claim in r.performance_claims
    ],
    "artifacts": lambda r: [(artifact.group, in_code(artifact)) for artifact in r.artifacts],
    "locations": lambda r: [(place.file, place.lines, place.symbol) for place in r.locations],
    "code": lambda r: [(block.language, block.location, torch_calls(block.code)) for block in r.evidence],
}


@pytest.mark.parametrize("name", FINDINGS)
@pytest.mark.parametrize("fact", TICKET_FACTS)
def test_a_restated_ticket_says_the_same(name: str, fact: str) -> None:
    """Field by field, the restated ticket has the values of the original."""
    seed, restated = both(name, name)
    assert TICKET_FACTS[fact](seed) == TICKET_FACTS[fact](restated)


@pytest.mark.parametrize("fact", REVIEW_FACTS)
def test_the_restated_review_says_the_same(fact: str) -> None:
    """Field by field, the restated review has the values of the original."""
    seed, restated = both(*REVIEW)
    assert REVIEW_FACTS[fact](seed) == REVIEW_FACTS[fact](restated)


@pytest.mark.parametrize(("seed", "restated"), PAIRS)
def test_no_number_is_lost(seed: str, restated: str) -> None:
    """Every number of the original, and every growth class, stands in the section that restates it."""
    original, own = both(seed, restated)
    first, *others = original.sections
    texts = {section.title: section.body.raw for section in own.sections[1:]}
    lost = {section.title: _lost(section.body.raw, texts[section.title]) for section in others}
    assert set() == _lost(first.body.raw, own.sections[0].body.raw)
    assert {} == {title: numbers for title, numbers in lost.items() if numbers}


@pytest.mark.parametrize(("seed", "restated"), PAIRS)
def test_every_block_calls_the_same_functions(seed: str, restated: str) -> None:
    """Block by block, the restated code calls what the original calls, in the same order."""
    original, own = ((SEEDS / seed).read_text(), (ROOT / "tickets" / restated).read_text())
    assert torch_calls_of_blocks(original) == torch_calls_of_blocks(own)


@pytest.mark.parametrize(("seed", "restated"), PAIRS)
def test_no_heading_is_lost(seed: str, restated: str) -> None:
    """Every section of the original has its counterpart; resolution and remediation may be new."""
    original, own = ([section.title for section in document.sections] for document in both(seed, restated))
    assert [] == [title for title in original[1:] if title not in own]


@pytest.mark.parametrize(("seed", "restated"), PAIRS)
def test_prose_is_in_other_words(seed: str, restated: str) -> None:
    """Nowhere do six words in a row come from the original, save for code, quotes and the reviewer."""
    original, own = ((SEEDS / seed).read_text(), (ROOT / "tickets" / restated).read_text())
    assert set() == _runs(original) & _runs(own)


def _lost(original: str, own: str) -> set[str]:
    return set(figures(original)) - set(figures(own))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Every run of six words within one line."""
    pieces = (
        piece
        for line in text.split("\n")
        if not line.startswith("**Reviewer:**")
        for piece in CODE_OR_QUOTED.split(line)
    )
    words = ([word.lower() for word in WORD.findall(piece)] for piece in pieces)
    return {tuple(run[at : at + 6]) for run in words for at in range(len(run) - 5)}
