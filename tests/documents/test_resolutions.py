"""What a ticket says of its own end, and what is only a recommendation."""

from __future__ import annotations

import pytest
from tests.documents.conftest import Finding

from finding_tickets.model.vocabulary import Outcome

STATED = {
    "### Status: FIXED\n\nBatched.\n": Outcome.FIXED,
    "**Status:** Already Fixed\n": Outcome.FIXED,
    "**Status:** Won't Fix\n\n**Rationale:** Rare.\n": Outcome.WONT_FIX,
    "### Decision: Won\u2019t Fix\n\n1. Rare\n": Outcome.WONT_FIX,
    "### Final Disposition: Won't Fix (Duplicate of B3-CR-01)\n": Outcome.WONT_FIX,
    "**Disposition:** Duplicate of B3-CR-01\n": Outcome.DUPLICATE,
    "**Acceptable as-is** - rare enough.\n": Outcome.ACCEPTABLE,
    "**No action needed** - it is right.\n": Outcome.ACCEPTABLE,
    "**Status:** Working as designed\n": Outcome.NOT_A_BUG,
    "**Not a bug**: meant so.\n": Outcome.NOT_A_BUG,
    "**Fix:** Wrote a docstring.\n\n**Commits:** `6f3f4b7b`\n": Outcome.FIXED,
    "### Final Fix Description\n\nCalled it.\n": Outcome.FIXED,
    "**Fix applied (Option A):**\n1. Called it\n": Outcome.FIXED,
    "\u2705 **FIXED** in abc1234.\n": Outcome.FIXED,
    "The wait was already fixed in abc1234.\n": Outcome.FIXED,
    "**Closed as:** Not a Bug\n": Outcome.NOT_A_BUG,
    "**Status:** Fixed: a duplicate of the call is gone\n": Outcome.FIXED,
    "**Duplicate of:** `B3-CR-01`\n": Outcome.DUPLICATE,
    "**Status:** Closed as invalid\n": Outcome.NOT_A_BUG,
}
NOT_STATED = [
    "**Low priority** - one could write a docstring.\n",
    "Consider fixing it.\n",
    "**Reason:** it would not fix much.\n",
    "**Status:** not yet fixed\n",
    "**Status:** to be fixed with the next release\n",
    "**Recommended fix:** call it.\n",
    "**Recommended: Won't Fix** - rare.\n",
    "**Recommendation:** Close it as won't fix.\n",
    "**Decision:** Consider closing it as a duplicate\n",
    "**Status:** can be closed as not a bug\n",
    "**Fix:** None needed yet\n",
]


@pytest.mark.parametrize("text", STATED)
def test_stated(finding: Finding, text: str) -> None:
    """A resolution says how the ticket ended, in a heading, a label, or the bold words that open it."""
    ticket = finding(f"## Resolution\n\n{text}").ticket
    assert ticket.resolution
    assert ticket.outcome
    assert (STATED[text], STATED[text]) == (ticket.resolution.outcome, ticket.outcome.value)


@pytest.mark.parametrize("text", NOT_STATED)
def test_not_stated(finding: Finding, text: str) -> None:
    """A recommendation, and an end that is yet to come, are no outcome; the section is noted."""
    reading = finding(f"## Resolution\n\n{text}")
    assert reading.ticket.resolution
    assert (None, None) == (reading.ticket.resolution.outcome, reading.ticket.outcome)
    assert [("resolution-outcome", 5)] == reading.rules


TITLES = [
    "3. Fix",
    "Fix Implemented (Option 2)",
    "Status: Fixed",
    "Resolution (FIXED)",
    "Decision - Already Fixed",
]


@pytest.mark.parametrize("title", TITLES)
def test_a_section_on_the_fix(finding: Finding, title: str) -> None:
    """A section that describes the fix that was made says that one was made."""
    ticket = finding(f"## {title}\n\nCalled it.\n").ticket
    assert ticket.outcome
    assert Outcome.FIXED == ticket.outcome.value


@pytest.mark.parametrize("remark", ["(NOT IMPLEMENTED)", "(to be implemented)", "(fixed by hand)"])
def test_a_proposal_that_was_not_carried_out(finding: Finding, remark: str) -> None:
    """A heading that says anything else of what it proposes states none."""
    assert finding(f"## Recommended Fix {remark}\n\nCall it.\n").ticket.outcome is None


def test_two_sections(finding: Finding) -> None:
    """Of two sections the one that states an outcome is the resolution."""
    text = "## Resolution\n\nConsider it.\n\n## Closure Notes\n\n**Fix:** Done.\n"
    resolution = finding(text).ticket.resolution
    assert resolution
    assert (Outcome.FIXED, "**Fix:** Done.") == (resolution.outcome, resolution.raw)


def test_the_rule_below_a_section_is_not_part_of_it(finding: Finding) -> None:
    """The line that separates sections is left out of their text."""
    fix = finding("## Recommended Fix\n\nCall it.\n\n---\n\n## Appendix\n").ticket.recommended_fix
    assert fix
    assert "Call it." == fix.raw


def test_a_recommendation_elsewhere_is_none(finding: Finding) -> None:
    """What the recommended fix calls its verdict is not how the ticket ended."""
    ticket = finding("## Recommended Fix\n\n### Verdict\n\n**Acceptable as-is**\n").ticket
    assert (None, None) == (ticket.resolution, ticket.outcome)


def test_the_metadata_counts_first(finding: Finding) -> None:
    """The row Resolution of the metadata outranks the section."""
    text = "## Metadata\n\n**Resolution:** duplicate\n\n## Resolution\n\n### Status: FIXED\n"
    ticket = finding(text).ticket
    assert ticket.outcome
    assert Outcome.DUPLICATE == ticket.outcome.value


def test_an_unknown_outcome(finding: Finding) -> None:
    """An outcome in the metadata that is none of the vocabulary has no value and is reported."""
    reading = finding("## Metadata\n\n**Resolution:** shelved\n")
    assert reading.ticket.outcome
    assert reading.ticket.outcome.value is None
    assert [("unknown-word", 7)] == reading.rules


@pytest.mark.parametrize(
    ("status", "text", "proposed"),
    [
        ("open", "**Acceptable as-is** - rare.\n", True),
        ("open", "Consider it.\n", True),
        ("open", "**Status:** Won't Fix\n", False),
        ("open", "It was fixed in abc1234.\n", False),
        ("open", "**Acceptable as-is** - rare.\n\n**Sign-off:** somebody\n", False),
        ("open", "### Fix Applied\n\nCalled it.\n", False),
        ("closed", "**Acceptable as-is** - rare.\n", False),
    ],
)
def test_proposed(finding: Finding, status: str, text: str, proposed: bool) -> None:
    """What an open ticket was filed with is a proposal, unless it is a statement, signed or dated."""
    resolution = finding(f"## Metadata\n\n**Status:** {status}\n\n## Resolution\n\n{text}").ticket.resolution
    assert resolution
    assert proposed == resolution.proposed


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        ("closed (won't fix)", Outcome.WONT_FIX),
        ("Closed - duplicate of A-1", Outcome.DUPLICATE),
        ("already-fixed", Outcome.FIXED),
        ("not a bug", Outcome.NOT_A_BUG),
        ("closed", None),
        ("resolved", None),
        ("open", None),
    ],
)
def test_an_outcome_in_the_status(finding: Finding, status: str, outcome: Outcome | None) -> None:
    """A status may state the outcome with it, or be one."""
    found = finding(f"## Metadata\n\n**Status:** {status}\n").ticket.outcome
    assert outcome == (found.value if found else None)


@pytest.mark.parametrize(
    "text", ["### Final Disposition: Won't Fix (Duplicate of B3-CR-01)\n", "**Duplicate of:** `b3-cr-01`\n"]
)
def test_duplicate_of(finding: Finding, text: str) -> None:
    """A resolution may name the ticket that this one repeats."""
    resolution = finding(f"## Resolution\n\n{text}").ticket.resolution
    assert resolution
    assert "B3-CR-01" == resolution.duplicate_of


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("#### Severity Confirmation\n\n- Original: P2 (it waits)\n- Confirmed: P2 (all)\n", [("P2", "P2")]),
        ("### Severity Downgrade\n\n**Original Severity:** P1\n**Revised Severity:** `P3`\n", [("P1", "P3")]),
        ("### Severity Adjustment: P1 \u2192 P3\n", [("P1", "P3")]),
        ("The severity was downgraded from P1 to P4.\n", [("P1", "P4")]),
        ("Downgraded to **P4** by all.\n", [(None, "P4")]),
        ("Severity confirmed: P1.\n", [(None, "P1")]),
        ("We recommend to lower it from P1 to P3.\n", []),
        ("It could be downgraded to P3.\n", []),
    ],
)
def test_severity_changes(finding: Finding, text: str, changes: list[tuple[str | None, str]]) -> None:
    """A severity that was looked at again has an original and a revised value; advice changes none."""
    found = finding(f"## Resolution\n\n**Status:** Fixed\n\n{text}").ticket.severity_changes
    assert changes == [(each.original, each.revised) for each in found]
    assert [one == other for one, other in changes] == [each.confirmed for each in found]


@pytest.mark.parametrize("written", ["P3 (downgraded from P1)", "P1 \u2192 P3", "~~P1~~ P3"])
def test_a_severity_change_in_the_metadata(finding: Finding, written: str) -> None:
    """The row of the severity may say what it was before."""
    ticket = finding(f"## Metadata\n\n**Severity:** {written}\n").ticket
    assert ticket.severity
    assert "P3" == ticket.severity.value
    assert [("P1", "P3", written)] == [
        (each.original, each.revised, each.raw) for each in ticket.severity_changes
    ]


def test_what_a_reviewer_advises_changes_no_severity(finding: Finding) -> None:
    """A cross-review that would lower the severity has not lowered it."""
    text = "## Cross-Review (DRL)\n\n**Verdict:** OBJECT\n\nDowngraded from P1 to P3.\n"
    assert () == finding(text).ticket.severity_changes


def test_checked_claims(finding: Finding) -> None:
    """Each row of a table of claims is true, false or neither, with what that rests on."""
    rows = (
        '| "it waits" | \u2705 TRUE | `a.py:3` |\n| it is `int | None` | \u274c Incorrect | `b.py` |\n'
        "| it leaks | Partially correct | now and then |\n| it is old | unknown | |\n"
    )
    text = f"## Resolution\n\n| Claim | Status | Evidence |\n|---|---|---|\n{rows}"
    found = finding(text).ticket.checked_claims
    assert [
        ('"it waits"', True, "a.py:3"),
        ("it is int | None", False, "b.py"),
        ("it leaks", None, "now and then"),
        ("it is old", None, ""),
    ] == [(each.claim, each.holds, each.evidence) for each in found]


def test_a_correction(finding: Finding) -> None:
    """A section that takes an earlier fix back is a correction, and counts where it states an end."""
    ticket = finding(
        "## Resolution\n\n**Status:** Fixed\n\n## CORRECTION (2024-12-28)\n\n"
        "**Status:** Won't fix after all.\n\n"
        "### Corrected Code\n\nNone.\n"
    ).ticket
    assert ticket.outcome
    assert Outcome.WONT_FIX == ticket.outcome.value
    assert [("CORRECTION (2024-12-28)", "2024-12-28", "Won't fix after all.")] == [
        (each.title, each.date, each.statement and each.statement.raw) for each in ticket.corrections
    ]


def test_a_correction_within_the_resolution(finding: Finding) -> None:
    """A correction may stand below a heading of the resolution, and state nothing."""
    ticket = finding("## Resolution\n\n**Status:** Fixed\n\n### Correction\n\nCalled it twice.\n").ticket
    assert ticket.outcome
    assert Outcome.FIXED == ticket.outcome.value
    assert [("Correction", None, "Called it twice.")] == [
        (each.title, each.date, each.raw) for each in ticket.corrections
    ]
