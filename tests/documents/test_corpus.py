"""Tickets that other people wrote, irregular on purpose; expected values are from the files, by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Problem, Ticket
from finding_tickets.model.vocabulary import AGENTS, Vocabulary

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*/*.md"))


LABELS = {"field", "value", "verdict", "reviewer", "agent", "date", "domain", "evaluation"}
LABELS |= {"drl", "pytorch", "code", "review", "deep", "rl", "engineering"}
# The name in a table that no register knows, where the heading above names the reviewer.
LABELS |= {"cross", "specialist"}

pytestmark = pytest.mark.skipif(not FILES, reason="there are no documents in ../shared/corpus")
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)


def read(file: Path) -> tuple[Ticket, tuple[Problem, ...]]:
    """A ticket of the corpus with its problems."""
    document, problems = read_document(file.read_bytes(), file.name, Vocabulary(agents=AGENTS))
    assert isinstance(document, Ticket)
    return document, problems


@each_file
def test_no_word_of_a_review_is_lost(file: Path) -> None:
    """What reviewers write is in the reviews; headings, labels and the column of domains are left over."""
    data, (document, _) = bytearray(file.read_bytes()), read(file)
    for review in document.reviews:
        named = (review.reviewer, review.verdict, review.date, review.evaluation, *review.remarks)
        for piece in (each for each in named if each):
            data[piece.span.start : piece.span.end] = b" " * (piece.span.end - piece.span.start)
    bodies = [each.body.span for each in document.sections if each.title.startswith("Cross-Review")]
    text = b"".join(data[span.start : span.end] for span in bodies).decode()
    assert set() == set(re.findall(r"[a-z]+", re.sub(r"(?m)^#.*", "", text).lower())) - LABELS
