"""Tickets that other people wrote, irregular on purpose; expected values are from the files, by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from finding_tickets.documents.reading import read_document
from finding_tickets.model.ticket import Problem, Ticket
from finding_tickets.model.vocabulary import AGENTS, Vocabulary

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*/*.md"))


class Expected(NamedTuple):
    """What a ticket holds, counted by hand.

    Attributes:
        reviews: In the order of the file, by the first letter of the reviewer (Drl, Pytorch, Codereview) and
            of the verdict (Endorse, Refine, Neutral, Object); ? for whom the register does not know.
        related: The IDs of its related findings, with ``=`` for a duplicate.
        done: Checks that are ticked, in the verification and in the resolution.
        undone: Checks that are not.
        places: Files of its location with their lines.
        problems: Lines of what cannot be understood, with the rule.
    """

    reviews: str
    related: str
    done: int
    undone: int
    places: str
    problems: str = ""


TABLE = {
    "B-METRIC-01": Expected("", "", 5, 0, "vectorized.py"),
    "B1-CR-08": Expected("dN pN cN", "", 0, 1, "__init__.py 1-9"),
    "B1-DRL-01": Expected(
        "dE pE cE", "B1-PT-01", 0, 4, "governor.py 338-340; vectorized.py 2547-2552 3186-3188"
    ),
    "B1-PT-01": Expected("dE pE cE", "B1-PT-05", 0, 3, "governor.py 310-322"),
    "B1-PT-05": Expected("dE pE cE", "B1-PT-01 B1-PT-02", 0, 3, "test_governor.py"),
    "B2-CR-01": Expected("pE cE dE", "=B2-PT-01 B2-DRL-09", 0, 2, "blending.py 62-104"),
    # No lines are named, but an aside on what the place is.
    "B2-DRL-05": Expected("pE cN dN", "B2-CR-03", 0, 3, "slot.py", "26 location-lines"),
    "B2-PT-01": Expected("dO pO", "=B2-CR-01 B2-DRL-07 B2-CR-05", 0, 2, "blending.py 76-76"),
    "B2-PT-06": Expected("dO pN cN", "", 0, 2, "blending.py 159-165"),
    "B2-PT-12": Expected("dN cE pE", "", 0, 0, "__init__.py 14-23"),
    "B3-CR-12": Expected("pN dN cN", "B3-PT-05 B3-PT-08", 0, 2, "transformer.py"),
    # A reviewer whom no register knows, and no heading that names another.
    "B3-CR-14": Expected("?E pE dE", "", 0, 2, "slot.py 2404-2404", "116 unknown-word"),
    # The absolute value of a gradient, in backticks, inside a cell.
    "B3-DRL-14": Expected("pN cE dE", "B3-PT-01", 0, 3, "slot.py 1798-1827", "110 table-cells"),
    "B3-DRL-15": Expected("?E", "", 0, 2, "slot.py 1939-1946", "99 review-reviewer"),
    "B3-DRL-21": Expected("dN pO cO", "B3-CR-01 B3-CR-02", 0, 2, "slot.py 361-365"),
    # How urgent it is, in the place of how it was resolved.
    "B3-PT-11": Expected("cE dN pE", "", 0, 0, "cnn.py 24-24", "69 resolution-outcome"),
    # A row that was added below its table, behind paragraphs.
    "B4-DRL-02": Expected("cO pO dN", "B4-DRL-03", 0, 3, "ppo.py 667-683", "140 table-header"),
    "B4-DRL-11": Expected("dN pO cN", "", 0, 2, "rollout_buffer.py 502-503"),
    # A type of two alternatives, in backticks, inside a cell.
    "B5-PT-02": Expected("dO cE pE", "", 0, 4, "normalization.py; vectorized.py", "172 table-cells"),
    "B6-CR-01": Expected(
        "pN dE cE",
        "B6-DRL-03 B6-PT-02",
        3,
        4,
        "test_reward_invariants.py 76-85; test_rewards.py 411-418; test_reward_telemetry.py 84-92",
    ),
    "B7-DRL-01": Expected(
        "dE pE cE", "B7-DRL-04 B7-DRL-02", 3, 3, "gradient_ema.py; vectorized.py 1687-1687"
    ),
    "B9-CR-04": Expected("", "B9-CR-02", 0, 3, "tracker.py 173-188 261-282"),
    "B11-PT-01": Expected("", "B10-PT-01", 0, 0, "action_masks.py 497-498; vectorized.py 366-369"),
}
OUTCOMES = {
    "B-METRIC-01": "fixed",
    "B1-CR-08": "wont-fix",
    "B1-PT-01": "fixed",
    "B1-PT-05": "fixed",
    "B2-CR-01": "fixed",
    "B2-DRL-05": "fixed",
    "B2-PT-01": "wont-fix",
    "B2-PT-12": "acceptable",
    "B3-DRL-15": "acceptable",
    "B3-DRL-21": "wont-fix",
    "B5-PT-02": "fixed",
    "B6-CR-01": "fixed",
    "B7-DRL-01": "fixed",
    "B11-PT-01": "fixed",
}

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


def ticket(name: str) -> Ticket:
    """The ticket with this path below the corpus."""
    return read(CORPUS / f"{name}.md")[0]


@each_file
def test_essentials(file: Path) -> None:
    """Every ticket has its ID, severity, status, summary and place."""
    read_ticket, _ = read(file)
    assert read_ticket.severity
    assert read_ticket.status
    assert read_ticket.summary
    assert file.stem == read_ticket.id.value
    assert read_ticket.severity.value is not None
    assert read_ticket.status.value is not None


@each_file
def test_reviews(file: Path) -> None:
    """Every cross-review is found, in order, with the register's word for its reviewer and an evaluation."""
    reviews = read(file)[0].reviews
    known = {"drl": "d", "pytorch": "p", "codereview": "c"}
    who = [known.get(review.reviewer.value, "?") if review.reviewer else "?" for review in reviews]
    verdicts = [review.opinion[0] if review.opinion else "?" for review in reviews]
    assert TABLE[file.stem].reviews == " ".join(map("".join, zip(who, verdicts, strict=True)))
    assert [] == [review for review in reviews if not review.evaluation or len(review.evaluation.raw) < 50]


@each_file
def test_relations(file: Path) -> None:
    """Every related finding comes from a table, a list or a reference; None is none."""
    found = (("=" if each.relationship == "duplicate" else "") + each.id for each in read(file)[0].related)
    assert TABLE[file.stem].related == " ".join(found)


@each_file
def test_checks(file: Path) -> None:
    """Every check of the verification and of the resolution counts; other boxes are none."""
    done = [item.done for item in read(file)[0].checklist]
    assert (TABLE[file.stem].done, TABLE[file.stem].undone) == (done.count(True), done.count(False))


@each_file
def test_places(file: Path) -> None:
    """Every file is a place, and lines go to the file that they are in, by name or by order."""
    found = (
        " ".join([Path(place.file or "").name, *(f"{lines.first}-{lines.last}" for lines in place.lines)])
        for place in read(file)[0].locations
    )
    assert TABLE[file.stem].places == "; ".join(found)


@each_file
def test_problems(file: Path) -> None:
    """Exactly what cannot be understood is reported, on its line."""
    found = (f"{problem.line} {problem.rule}" for problem in read(file)[1])
    assert TABLE[file.stem].problems == "; ".join(found)


@each_file
def test_outcome(file: Path) -> None:
    """What a ticket says of its own end; nine of them say nothing."""
    outcome = read(file)[0].outcome
    assert OUTCOMES.get(file.stem) == (outcome.value if outcome else None)


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


def test_a_remark_below_the_table() -> None:
    """The paragraph below a table of one review belongs to it, beside the evaluation in the cell."""
    *_, last = ticket("triaged/B3-DRL-14").reviews
    # Line 122 is the row, line 124 the paragraph.
    assert last.evaluation
    assert [122, 124] == [last.evaluation.span.line, *(remark.span.line for remark in last.remarks)]


def test_a_condition() -> None:
    """What a verdict adds in brackets is kept beside the opinion, and its evaluation is whole."""
    first, *_ = ticket("not-a-bug/B2-PT-12").reviews
    assert first.evaluation
    # The evaluation begins on line 100 and has its last paragraph on line 107.
    assert ("NEUTRAL", "with caveat", 100, 7) == (
        first.opinion,
        first.condition,
        first.evaluation.span.line,
        first.evaluation.raw.count("\n"),
    )


def test_what_was_done() -> None:
    """A confirmed severity, a table of four claims, a correction, a duplicate and a date."""
    [severity] = ticket("fixed/B5-PT-02").severity_changes
    [correction] = ticket("fixed/B1-PT-01").corrections
    resolution = ticket("wontfix/B3-DRL-21").resolution
    closed = ticket("fixed/B1-PT-05").closed
    assert resolution
    assert closed
    assert ("P2", "P2", True) == (severity.original, severity.revised, severity.confirmed)
    assert [True] * 4 == [claim.holds for claim in ticket("fixed/B5-PT-02").checked_claims]
    assert ("2024-12-28", 227) == (correction.date, correction.span.line)
    assert ("B3-CR-01", "2024-12-28") == (resolution.duplicate_of, closed.value)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("triaged/B3-PT-11", True),
        ("not-a-bug/B3-DRL-15", True),
        ("not-a-bug/B2-PT-12", True),
        ("fixed/B2-DRL-05", False),
        ("fixed/B1-PT-01", False),
        ("wontfix/B3-DRL-21", False),
    ],
)
def test_proposals(name: str, proposed: bool) -> None:
    """A resolution that an open ticket was filed with is a proposal; one that was stated or dated is not."""
    resolution = ticket(name).resolution
    assert resolution
    assert proposed == resolution.proposed
