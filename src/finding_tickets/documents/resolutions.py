"""How a ticket was resolved, as far as its words say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from finding_tickets.documents.entries import Entry
from finding_tickets.documents.inline import plain
from finding_tickets.documents.outcomes import done_remark, outcome_of
from finding_tickets.documents.parts import Part
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Resolution
from finding_tickets.model.vocabulary import Outcome, squeeze

_STATEMENTS = frozenset(
    [
        "status",
        "decision",
        "disposition",
        "outcome",
        "resolution",
        "verdict",
        "conclusion",
        "finalstatus",
        "finaldecision",
        "finaldisposition",
        "finalresolution",
        "finalverdict",
        "resolutionstatus",
        "closedas",
    ]
)
_REASONS = frozenset(["reason", "closurereason", "rationale"])
_DUPLICATE = frozenset(["duplicateof", "duplicate"])
_ACTS = frozenset(
    [
        "date",
        "closed",
        "closedon",
        "resolved",
        "resolvedon",
        "fixed",
        "signoff",
        "commit",
        "commits",
        "approvedby",
    ]
)
_FIX = re.compile(
    r"(\d+[.)] )?(the |final |implemented |actual )*fix(es)?"
    r"( description| applied| implemented| details)?( \(.*\))?",
    re.IGNORECASE,
)
_NO_FIX = re.compile(r"\W*(?:none\b|n/a\b|no\b|not\b|tbd\b)", re.IGNORECASE)
_LEAD = re.compile(rb"[^\w*\r\n]*\*\*([^*]+)\*\*")
_OPENING = re.compile(
    r"(?P<marks>\W*)(?P<words>(?:closed (?:as |- ))?(?:already )?"
    r"(?:fixed|implemented|won['\u2019]?t[ -]fix|not a bug|duplicate of|working as (?:designed|intended)"
    r"|by design|no (?:action|changes?|fix) (?:needed|required)|acceptable as[ -]is)\b)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:was|were|(?:has|have) been) (?P<words>(?:already )?(?:fixed|resolved|implemented|addressed))\b",
    re.IGNORECASE,
)
_TITLE_WORDS = re.compile(r"[:(\u2013\u2014]|\s-\s")


def read_resolution(part: Part, outcome: Field[Outcome | None] | None, *, settled: bool) -> Resolution:
    """The resolution that a section with this outcome is.

    A ticket that is not ``settled`` may have been filed with the section, as advice.
    """
    body, found = part.body, part.entries
    acted = any(entry.key in _STATEMENTS | _ACTS for entry in found) or any(_headings(part))
    announced = any(True for _ in _announcements(part, found))
    fixed = outcome is not None and outcome.value is Outcome.FIXED
    return Resolution(
        raw=body.raw,
        span=body.span,
        outcome=outcome.value if outcome else None,
        proposed=not (settled or acted or announced or fixed),
        duplicate_of=duplicate_of(part.source, part.source.raw(part.start, part.end)),
    )


def read_outcome(part: Part) -> Field[Outcome | None] | None:
    """The words of a resolution that state its outcome, or None."""
    found, words = part.entries, part.source.vocabulary.outcomes
    stated = ((text, outcome_of(plain(text.raw), words)) for text in _statements(part, found))
    repeated = ((entry.value, Outcome.DUPLICATE) for entry in found if entry.key in _DUPLICATE)
    announced = ((text, Outcome.FIXED) for text in _announcements(part, found))
    for text, outcome in chain(stated, repeated, announced):
        if outcome:
            return Field(text.raw, text.span, outcome)
    return None


def read_done(part: Part) -> Field[Outcome | None] | None:
    """The word in a heading that says that what the part proposes was done: ``(IMPLEMENTED)``."""
    for heading in (block for block in (part.heading, *part.blocks) if block and block.level):
        raw = part.source.raw(heading.first, heading.last)
        found = done_remark(raw)
        if found:
            start = heading.first + len(raw[: found[0]].encode())
            text = part.source.text(start, start + len(raw[slice(*found)].encode()))
            return Field(text.raw, text.span, Outcome.FIXED)
    return None


def duplicate_of(source: Source, text: str) -> str | None:
    """The ID of the ticket that a text calls this one a duplicate of."""
    match = re.search(
        rf"duplicates? (?:of|to)[\s:*_`\[]*({source.vocabulary.id_pattern})", text, re.IGNORECASE
    )
    return match[1].upper() if match else None


def stated_outcome(source: Source, text: Text) -> Field[Outcome | None]:
    """A metadata row that states the outcome."""
    outcome = outcome_of(plain(text.raw), source.vocabulary.outcomes)
    if outcome is None:
        hint = f"one of {', '.join(source.vocabulary.outcomes)}"
        source.report("unknown-word", text.span.start, f"Resolution is {plain(text.raw)!r}", hint=hint)
    return Field(text.raw, text.span, outcome)


def _statements(part: Part, found: list[Entry]) -> Iterator[Text]:
    """What may state an outcome, the most explicit first."""
    yield from _headings(part)
    yield from (entry.value for entry in found if entry.key in _STATEMENTS)
    yield from (entry.value for entry in found if entry.key in _REASONS and _OPENING.match(entry.value.raw))
    yield from _leads(part)


def _headings(part: Part) -> Iterator[Text]:
    """The headings that state something: ``Status: FIXED``, ``Resolution (FIXED)``."""
    for heading in (block for block in (part.heading, *part.blocks) if block and block.level):
        raw = part.source.raw(heading.first, heading.last)
        mark = _TITLE_WORDS.search(raw)
        if mark and squeeze(raw[: mark.start()]) in _STATEMENTS:
            yield part.source.text(heading.first + len(raw[: mark.end()].encode()), heading.last)


def _leads(part: Part) -> Iterator[Text]:
    """The words that open the section: ``**Acceptable as-is**``, ``Fixed in abc``, ``It was fixed``."""
    first = next((block for block in part.blocks if block.kind == "Paragraph"), None)
    if first is None:
        return
    lead = _LEAD.match(part.source.data, first.start, first.end)
    if lead and not lead[1].rstrip().endswith(b":"):
        yield part.source.text(*lead.span(1))
    opening = _OPENING.match(part.source.raw(first.start, first.end))
    if opening:
        start = first.start + len(opening["marks"].encode())
        yield part.source.text(start, start + len(opening["words"].encode()))
    told = _TOLD.search(part.source.raw(first.start, first.end))
    if told:
        start = first.start + len(told.string[: told.start("words")].encode())
        yield part.source.text(start, start + len(told["words"].encode()))


def _announcements(part: Part, found: list[Entry]) -> Iterator[Text]:
    """A heading or label that announces the fix that was made says that one was made."""
    headings = [block for block in (part.heading, *part.blocks) if block and block.level]
    titles = [part.source.text(block.first, block.last) for block in headings]
    yield from (title for title in titles if _FIX.fullmatch(plain(title.raw)))
    yield from (
        entry.value for entry in found if _FIX.fullmatch(entry.label) and not _NO_FIX.match(entry.plain)
    )
