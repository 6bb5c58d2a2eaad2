"""Tickets that other people wrote, irregular on purpose; expected values are from the files, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from finding_tickets.markdown.reading import read_document
from finding_tickets.model.problem import Problem
from finding_tickets.model.ticket import Ticket

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
FILES = sorted(CORPUS.glob("*/*.md"))

# The verdicts of each ticket in the order of the file, by the first letter of the reviewer (Drl, Pytorch,
# Codereview) and of the verdict (Endorse, Refine, Neutral, Object); ? for whom the register does not know.
VERDICTS = {
    "B-METRIC-01": "",
    "B1-CR-08": "dN pN cN",
    "B1-DRL-01": "dE pE cE",
    "B1-PT-01": "dE pE cE",
    "B1-PT-05": "dE pE cE",
    "B2-CR-01": "pE cE dE",
    "B2-DRL-05": "pE cN dN",
    "B2-PT-01": "dO pO",
    "B2-PT-06": "dO pN cN",
    "B2-PT-12": "dN cE pE",
    "B3-CR-12": "pN dN cN",
    "B3-CR-14": "?E pE dE",
    "B3-DRL-14": "pN cE dE",
    "B3-DRL-15": "?E",
    "B3-DRL-21": "dN pO cO",
    "B3-PT-11": "cE dN pE",
    "B4-DRL-02": "cO pO dN",
    "B4-DRL-11": "dN pO cN",
    "B5-PT-02": "dO cE pE",
    "B6-CR-01": "pN dE cE",
    "B7-DRL-01": "dE pE cE",
    "B9-CR-04": "",
    "B11-PT-01": "",
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
# What cannot be understood, by a look at each line: no lines named; `dict | None` in a cell; no reviewer; a
# table row without its header; a reviewer outside the register; `|g|` in a cell; a remark as resolution.
PROBLEMS = {
    ("B2-DRL-05", 26, "location-lines"),
    ("B5-PT-02", 172, "table-cells"),
    ("B3-DRL-15", 99, "review-reviewer"),
    ("B4-DRL-02", 140, "table-header"),
    ("B3-CR-14", 116, "unknown-word"),
    ("B3-DRL-14", 110, "table-cells"),
    ("B3-PT-11", 69, "resolution-outcome"),
}

pytestmark = pytest.mark.skipif(not FILES, reason="there are no documents in ../shared/corpus")


def read(file: Path) -> tuple[Ticket, tuple[Problem, ...]]:
    """A ticket of the corpus with its problems."""
    document, problems = read_document(file.read_bytes(), file.name)
    assert isinstance(document, Ticket)
    return document, problems


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_essentials(file: Path) -> None:
    """Every ticket has its ID, severity, status, summary and place."""
    ticket, _ = read(file)
    assert ticket.severity
    assert ticket.status
    assert ticket.summary
    assert file.stem == ticket.id.value
    assert ticket.severity.value is not None
    assert ticket.status.value is not None
    assert [] == [place for place in ticket.locations if not place.file]
    assert ticket.locations


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_verdicts(file: Path) -> None:
    """Every cross-review is found, in order, with an evaluation."""
    reviews = read(file)[0].reviews
    known = {"drl": "d", "pytorch": "p", "codereview": "c"}
    who = [known.get(review.reviewer.value, "?") if review.reviewer else "?" for review in reviews]
    verdicts = [review.opinion[0] if review.opinion else "?" for review in reviews]
    assert VERDICTS[file.stem] == " ".join(map("".join, zip(who, verdicts, strict=True)))
    assert [] == [review for review in reviews if not review.evaluation or len(review.evaluation.raw) < 50]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_outcome(file: Path) -> None:
    """What a ticket says of its own end; nine of them say nothing."""
    outcome = read(file)[0].outcome
    assert OUTCOMES.get(file.stem) == (outcome.value if outcome else None)


def test_problems() -> None:
    """Exactly what cannot be understood is reported, by file and line."""
    found = {(file.stem, problem.line, problem.rule) for file in FILES for problem in read(file)[1]}
    assert found == PROBLEMS


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("fixed/B1-DRL-01", [("governor.py", [338]), ("vectorized.py", [2547, 3186])]),
        ("fixed/B11-PT-01", [("action_masks.py", [497]), ("vectorized.py", [366])]),
        (
            "fixed/B6-CR-01",
            [
                ("test_reward_invariants.py", [76]),
                ("test_rewards.py", [411]),
                ("test_reward_telemetry.py", [84]),
            ],
        ),
        ("fixed/B7-DRL-01", [("gradient_ema.py", []), ("vectorized.py", [1687])]),
        ("triaged/B9-CR-04", [("tracker.py", [173, 261])]),
        ("triaged/B3-CR-12", [("transformer.py", [])]),
        ("fixed/B-METRIC-01", [("vectorized.py", [])]),
    ],
)
def test_places(path: str, places: list[tuple[str, list[int]]]) -> None:
    """Lines go to the file that they are in, by name or by order."""
    assert places == [
        (Path(place.file or "").name, [lines.first for lines in place.lines])
        for place in read(CORPUS / f"{path}.md")[0].locations
    ]


@pytest.mark.parametrize(
    ("path", "related"),
    [
        (
            "wontfix/B2-PT-01",
            [("B2-CR-01", "duplicate"), ("B2-DRL-07", "related"), ("B2-CR-05", "related")],
        ),
        ("fixed/B11-PT-01", [("B10-PT-01", "related")]),
        ("wontfix/B3-DRL-21", [("B3-CR-01", "related"), ("B3-CR-02", "related")]),
        ("not-a-bug/B2-PT-06", []),
    ],
)
def test_relations(path: str, related: list[tuple[str, str]]) -> None:
    """Relations come from tables, lists and references; None is none."""
    assert related == [(each.id, each.relationship) for each in read(CORPUS / f"{path}.md")[0].related]
