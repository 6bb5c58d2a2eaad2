"""What a status report is made of, from entries made by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.conftest import Repository

from finding_tickets.model.verification import ClaimResult, VariantResult, Verification
from finding_tickets.model.vocabulary import Verdict
from finding_tickets.register.config import Config
from finding_tickets.register.entries import Entry as Stated
from finding_tickets.register.load import Register, load
from finding_tickets.register.query import select
from finding_tickets.register.staleness import CurrentVerdict
from finding_tickets.report.rows import ReportRow, row_of
from finding_tickets.report.status import (
    RegisterStatus,
    gains_text,
    refutation_text,
    short_paths,
)
from finding_tickets.report.status import status_of_rows as of_rows


def status(rows: Iterable[ReportRow]) -> RegisterStatus:
    """The status of a register that has these documents and no other."""
    made = tuple(rows)
    return of_rows(made, Register(Path(), Config(), [each.stated for each in made]))


def claim(
    variant: str, metric: str, *, holds: bool | None, expect: Literal["holds", "refuted"] = "holds"
) -> ClaimResult:
    """A claim of 1 that was measured as 2, or as it was claimed."""
    measured = "1" if holds else "2"
    name = f"{variant}.{metric}"
    return ClaimResult(
        id=name, variant=variant, metric=metric, claimed="1", measured=measured, holds=holds, expect=expect
    )


def verification(*claims: ClaimResult, **variants: VariantResult) -> Verification:
    """A verification of these variants and claims."""
    return Verification(
        ticket="B1-PT-01",
        verdict=Verdict.VERIFIED,
        reason="because",
        meter="simulated",
        torch="2.13.0",
        device="h200",
        sweep=({"n": 1},),
        variants=variants,
        claims=claims,
    )


@pytest.mark.parametrize(
    ("metric", "found", "fix", "expected"),
    [
        ("syncs", "2*n + 1", "n", "2*n + 1 syncs became n"),
        ("syncs", "tensors", "0", "syncs: one for each tensor became none"),
        ("syncs", "4*n", "devices", "4*n syncs became one for each device"),
        # The law is 5*2 = 10 at the largest of the sizes 1 and 2.
        ("peak_bytes", "no law, 10..1200", "5*n", "peak bytes: at most 1,200 became at most 10"),
        ("peak_bytes", "no law, 1..1200", "0..1000", "peak bytes: at most 1,200 became at most 1,000"),
        ("raised", "no law, 0..1", "0", "exceptions: at most 1 became none"),
        ("syncs", "n", "n", ""),
        ("syncs", "n", "2*n", ""),
        ("syncs", "n or 2*n - 1", "0", ""),
    ],
)
def test_what_a_fix_has_won(metric: str, found: str, fix: str, expected: str) -> None:
    """The law before and after in words, or else the highest cost; nothing without a gain."""
    variants = {}
    for name, text in (("found", found), ("fix", fix)):
        is_law = ".." not in text and " or " not in text
        laws, growth = ({metric: text}, {}) if is_law else ({}, {metric: text})
        variants[name] = VariantResult(laws=laws, growth=growth, samples=(), sites=())
    done = verification(claim("found", metric, holds=True), **variants)
    done = done.model_copy(
        update={"sweep": ({"n": 1, "tensors": 1, "devices": 1}, {"n": 2, "tensors": 2, "devices": 1})}
    )
    assert expected == gains_text(measured_row(Verdict.VERIFIED, done))
    for verdict in (Verdict.FAILED, Verdict.STALE, Verdict.INCONCLUSIVE):
        assert "" == gains_text(measured_row(verdict, done))


def test_the_price_of_a_fix() -> None:
    """What rises in return is named; what stays the same is not."""
    found = VariantResult(laws={"syncs": "9", "h2d": "1", "d2h": "2"}, samples=(), sites=())
    fix = VariantResult(laws={"syncs": "1", "h2d": "3", "d2h": "2"}, samples=(), sites=())
    claims = [claim("found", metric, holds=True) for metric in ("syncs", "h2d", "d2h")]
    done = verification(*claims, found=found, fix=fix)
    assert "9 syncs became one; in return more h2d" == gains_text(measured_row(Verdict.VERIFIED, done))


def measured_row(verdict: Verdict, done: Verification | None) -> ReportRow:
    """An open finding that was measured."""
    return row_of(Stated("finding", "A.md", "A-1", "It waits", status="open"), CurrentVerdict(verdict, done))


def test_the_false_claim_that_matters_most() -> None:
    """What was not expected, then what is about the code as found; an expected one says why it is false."""
    expected = claim("recommended", "h2d", holds=False, expect="refuted")
    why = replace_why(claim("found", "h2d", holds=False, expect="refuted"), "it copies twice")
    surprise = claim("fix", "syncs", holds=False)
    for claims, text in (
        ((), ""),
        ((expected,), "recommended.h2d claims 1, but measured 2"),
        ((expected, why), "found.h2d claims 1, but it copies twice; 1 more claim false"),
        (
            (expected, why, surprise),
            "fix.syncs claims 1, but measured 2, which is not expected; 2 more claims false",
        ),
    ):
        assert text == refutation_text(measured_row(Verdict.REFUTED, verification(*claims)))


def replace_why(one: ClaimResult, why: str) -> ClaimResult:
    """The claim with a reason."""
    return one.model_copy(update={"why": why})


def test_what_to_do_next() -> None:
    """What is wrong comes first; of one step the blocked come last, then the worst, then the oldest."""
    rows = [
        document("A-1", status="open", severity="P1", created="2025-02-01"),
        document("A-2", status="open", severity="P1", created="2025-01-01"),
        document("A-3", status="open", severity="P0", related=(("A-1", "blocked-by"), ("A-6", "blocked-by"))),
        document("A-4", status="open", holds=True),
        document("A-5", status="in-review"),
        document("A-6", status="fixed", holds=False),
        document("A-7"),
    ]
    made = of_rows(rows, Register(Path(), Config(), [each.stated for each in rows]), "severity:P0")
    open_ones = "status:fix-in-progress,in-review,investigating,open"
    assert [
        ("restate it", ["A-6"], "verdict:refuted"),
        ("close it", ["A-4"], f"verdict:verified {open_ones}"),
        ("review the fix", ["A-5"], "verdict:unverified no:verifier status:in-review"),
        ("fix it, or decide", ["A-2", "A-1", "A-3"], "verdict:unverified no:verifier status:open"),
        ("state a status", ["A-7"], "kind:finding no:status"),
    ] == [
        (
            re.match("restate it|close it|fix it, or decide|.*", each.step)[0],  # type: ignore[index]
            [row.id for row in each.rows],
            each.command.removeprefix("tickets list 'severity:P0 ").removesuffix("'"),
        )
        for each in made.next_steps
    ]
    # A-6 is settled, and blocks nothing any more.
    assert [("A-3", "waits for A-1")] == [(each.row.id, each.text) for each in made.blocked]


def test_a_statement_that_is_gone_is_to_be_measured_as_fixed(tmp_path: Path) -> None:
    """It may have gone with the fix of another ticket; a statement that is still there needs a fix."""
    (tmp_path / "a.py").write_text("def f(x):\n    return (x.item())\n")
    for code, step, command in (
        ("return x.item()", "write a fix", "tickets list 'verdict:reproduced status:"),
        ("return x.sum().item()", "measure the fix", "tickets fix A-1"),
    ):
        stated = replace(document("A-1", status="open").stated, place=("a.py", "f", code, 0))
        row = row_of(stated, CurrentVerdict(Verdict.REPRODUCED))
        (next_step,) = of_rows([row], Register(tmp_path, Config(), [stated])).next_steps
        assert next_step.step.startswith(step)
        assert next_step.command.startswith(command)


def test_the_commands_of_the_next_steps_list_their_documents(repository: Repository) -> None:
    """Each query finds exactly the documents of its step."""
    for number, word in enumerate(["open", "open", "in-review", "investigating", "fix-in-progress", "odd"]):
        repository.ticket(f"A-{number}", status=word)
    listing = load(repository.root)
    facts = Register(listing.root, listing.config, listing.entries)
    made = of_rows((row_of(each, CurrentVerdict()) for each in facts.entries), facts)
    assert 5 == len(made.next_steps)
    for each in made.next_steps:
        command, verb, query = shlex.split(each.command)
        assert ("tickets", "list") == (command, verb)
        assert {row.id for row in each.rows} == {row.id for row in select(query, facts)}


def test_one_file_under_several_names(tmp_path: Path) -> None:
    """A path ends where a file that is here begins; else below a folder in a home."""
    (tmp_path / "src/here").mkdir(parents=True)
    (tmp_path / "src/here/a.py").touch()
    spellings = {
        "/home/ada/repo/src/a/one.py": "src/a/one.py",
        "src/a/one.py": "src/a/one.py",
        "/home/ada/repo/setup.py": "setup.py",
        "setup.py": "setup.py",
        "/home/bo/src/two.py": "two.py",
        "/opt/src/two.py": "/opt/src/two.py",
        "/srv/ci/src/here/a.py": "src/here/a.py",
        "/srv/ci/src/here/b.py": "/srv/ci/src/here/b.py",
        "/home/cy/other/src/x.py": "src/x.py",
        "~/other/x.py": "x.py",
        "one.py": "one.py",
        "x/src/a/one.py": "x/src/a/one.py",
        "/": "/",
    }
    assert spellings == short_paths(spellings, tmp_path)


def document(name: str, *, holds: bool | None = None, **stated: Any) -> ReportRow:
    """A finding by what it states, and whether its claim about the code as found was measured to hold."""
    measured = verification(claim("found", "syncs", holds=holds)) if holds is not None else None
    verdict = {None: Verdict.UNVERIFIED, True: Verdict.VERIFIED, False: Verdict.REFUTED}[holds]
    return row_of(
        Stated("finding", f"tickets/{name}.md", name, "It waits", **stated), CurrentVerdict(verdict, measured)
    )


def test_how_often_measurements_bore_reviewers_out() -> None:
    """Who endorses what holds or objects to what does not; each row is of all documents."""
    said = {"ada": "ENDORSE", "bo": "OBJECT", "cy": "NEUTRAL"}
    reviews = tuple(said.items())
    made = status(
        [
            document("A-1", holds=True, reviews=reviews),
            document("A-2", holds=False, reviews=reviews),
            document("A-3", holds=False, reviews=reviews[:1]),
            document("A-4", reviews=reviews),
            document("A-5", holds=True),
        ]
    )
    assert (
        ("borne out", "not borne out", "no side", "not measured", "did not review", "sum"),
        (
            ("ada", (1, 2, 0, 1, 1, 5)),
            ("bo", (1, 1, 0, 1, 2, 5)),
            ("cy", (0, 0, 3, 0, 2, 5)),
        ),
    ) == (made.by_reviewer.columns, made.by_reviewer.rows)


DUPLICATE: dict[str, Any] = {"related": (("a-1", "duplicate"),)}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"status": "open"}, {"status": "fixed"}, ["decisions"]),
        (
            {"status": "fixed", "outcome": "fixed"},
            {"status": "wont-fix", "outcome": "wont-fix"},
            ["decisions"],
        ),
        ({"status": "open"}, {"status": "investigating"}, []),
        ({"status": "open"}, {"status": "closed", "outcome": "duplicate"}, []),
        ({"status": "open"}, {}, []),
        ({"status": "open", "holds": True}, {"status": "open", "holds": False}, ["measurements"]),
        ({"status": "open", "holds": True}, {"status": "open", "holds": True}, []),
        (
            {"status": "open", "holds": True},
            {"status": "fixed", "holds": False},
            ["decisions", "measurements"],
        ),
    ],
)
def test_duplicates_that_disagree(one: dict[str, Any], other: dict[str, Any], expected: list[str]) -> None:
    """About decisions as lint has it, and about what was measured; each pair is named once."""
    rows = [document("A-1", related=(("A-2", "duplicate"),), **one), document("A-2", **DUPLICATE, **other)]
    assert [("A-1", "A-2", about) for about in expected] == [
        (pair.one.id, pair.other.id, pair.about) for pair in status(rows).disagreements
    ]


def test_duplicates_outside_of_the_query() -> None:
    """A document of the report is compared with its duplicate wherever that is, and no other pair is."""
    rows = [
        document("A-1", status="open"),
        document("A-2", status="fixed", **DUPLICATE),
        document("A-3", status="open"),
        document("A-4", status="fixed", related=(("A-3", "duplicate"), ("A-9", "duplicate"))),
    ]
    facts = Register(Path(), Config(), [each.stated for each in rows])
    assert ["A-1"] == [pair.other.id for pair in of_rows(rows[:1], facts).disagreements]
    assert [] == list(of_rows([], facts).disagreements)


def test_duplicates_that_are_not_to_be_compared() -> None:
    """Where every ticket that names the other has a comment to ignore the rule, decisions may differ."""
    one = document("A-1", status="open")
    other = replace(document("A-2", status="fixed", **DUPLICATE), ignored=("duplicates-differ",))
    assert () == status([one, other]).disagreements
    assert 1 == len(status([replace(one, ignored=other.ignored), replace(other, ignored=())]).disagreements)
