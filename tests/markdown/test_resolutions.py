"""What a ticket says of its own end, and what is only a recommendation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from finding_tickets.model.vocabulary import Outcome

if TYPE_CHECKING:
    from tests.markdown.conftest import Finding

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
}
NOT_STATED = [
    "**Low priority** - one could write a docstring.\n",
    "Consider fixing it.\n",
    "**Status:** not yet fixed\n",
    "**Status:** to be fixed with the next release\n",
    "**Recommended fix:** call it.\n",
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


def test_closure_notes(finding: Finding) -> None:
    """Closure notes are a resolution under another title."""
    ticket = finding("## Closure Notes\n\n**Closed:** 2024-12-28\n\n**Fix:** Added a test.\n").ticket
    assert ticket.outcome
    assert Outcome.FIXED == ticket.outcome.value


@pytest.mark.parametrize("title", ["Fix", "Fix Applied", "Fix Implemented (Option 2)", "Implemented Fix"])
def test_a_section_on_the_fix(finding: Finding, title: str) -> None:
    """A section that describes the fix that was made says that one was made."""
    ticket = finding(f"## {title}\n\nCalled it.\n").ticket
    assert ticket.outcome
    assert Outcome.FIXED == ticket.outcome.value


def test_a_recommended_fix_that_was_implemented(finding: Finding) -> None:
    """A remark in a section's title does not change what the section is."""
    fix = finding("## Recommended Fix (IMPLEMENTED)\n\nCall it.\n").ticket.recommended_fix
    assert fix
    assert "Call it." == fix.raw


def test_two_sections(finding: Finding) -> None:
    """Of two sections the one that states an outcome is the resolution."""
    resolution = finding(
        "## Resolution\n\nConsider it.\n\n## Closure Notes\n\n**Fix:** Done.\n"
    ).ticket.resolution
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


@pytest.mark.parametrize(("status", "outcome"), [("fixed", Outcome.FIXED), ("wont-fix", Outcome.WONT_FIX)])
def test_by_status(finding: Finding, status: str, outcome: Outcome) -> None:
    """A status that is an outcome states it where nothing else does."""
    ticket = finding(f"## Metadata\n\n**Status:** {status}\n").ticket
    assert ticket.outcome
    assert outcome == ticket.outcome.value


def test_the_metadata_counts_first(finding: Finding) -> None:
    """The row Resolution of the metadata outranks the section."""
    ticket = finding(
        "## Metadata\n\n**Resolution:** duplicate\n\n## Resolution\n\n### Status: FIXED\n"
    ).ticket
    assert ticket.outcome
    assert Outcome.DUPLICATE == ticket.outcome.value


def test_an_unknown_outcome(finding: Finding) -> None:
    """An outcome in the metadata that is none of the vocabulary has no value and is reported."""
    reading = finding("## Metadata\n\n**Resolution:** shelved\n")
    assert reading.ticket.outcome
    assert reading.ticket.outcome.value is None
    assert [("unknown-word", 7)] == reading.rules
