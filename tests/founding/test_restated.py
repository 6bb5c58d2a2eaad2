"""The restated documents hold every fact of the documents they restate, in other words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from finding_tickets.documents.reading import read_document

ROOT = Path(__file__).parents[2]
SEEDS = ROOT.parent / "shared" / "seeds"
FINDINGS = ["B7-PT-02.md", "B7-PT-03.md", "B3-CR-05.md", "B1-PT-02.md"]
REVIEW = ("task-5-implementation-review.md", "reviews/task-5-foreach-norm.md")
PAIRS = [*((name, name) for name in FINDINGS), REVIEW]
NUMBER = re.compile(r"\d[\w.,]*(?<![.,])")
CODE_OR_QUOTED = re.compile(r"`[^`]+`|\"[^\"]+\"|/[\w/.-]+|\|")
GROWTH = re.compile(r"O\([^)]*\)")
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


def figures(text: str) -> list[str]:
    """The numbers and growth classes of a text, in their order."""
    return NUMBER.findall(text) + GROWTH.findall(text)


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
