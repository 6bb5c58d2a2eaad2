"""How a ticket was resolved, as far as its words say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from finding_tickets.markdown.entries import Entry, entries
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Resolution
from finding_tickets.model.vocabulary import Outcome, squeeze, word_for

_STATEMENTS = frozenset(
    ["status", "decision", "finaldisposition", "disposition", "outcome", "resolution", "verdict"]
)
_FIXES = re.compile(r"(the |final |implemented )*fix(es)?( description| applied)?( \(.*\))?", re.IGNORECASE)
_LEAD = re.compile(rb"\*\*([^*]+)\*\*")
# The first that matches counts: "won't fix (duplicate of ...)" is a won't-fix.
_PHRASES = (
    (re.compile(r"\bnot (?:yet )?(?:been )?(?:fixed|resolved)|\bpartial|\bto be fixed", re.IGNORECASE), None),
    (re.compile(r"\bwo(?:n['\u2019]?t|nt|uld not)[ -]?fix", re.IGNORECASE), Outcome.WONT_FIX),
    (
        re.compile(r"\bnot[ -]a[ -](?:bug|defect)|\bworking as (?:designed|intended)", re.IGNORECASE),
        Outcome.NOT_A_BUG,
    ),
    (re.compile(r"\binvalid\b|\bfalse positive\b", re.IGNORECASE), Outcome.NOT_A_BUG),
    (re.compile(r"\bduplicate\b", re.IGNORECASE), Outcome.DUPLICATE),
    (
        re.compile(r"\bacceptable\b|\bas[ -]is\b|\bno action (?:needed|required)", re.IGNORECASE),
        Outcome.ACCEPTABLE,
    ),
    (re.compile(r"\bfixed\b|\bresolved\b", re.IGNORECASE), Outcome.FIXED),
)


def read_resolution(part: Part) -> Resolution:
    """The resolution that a section states; a section that only recommends something states no outcome."""
    outcome, body = read_outcome(part), part.body
    return Resolution(raw=body.raw, span=body.span, outcome=outcome.value if outcome else None)


def read_outcome(part: Part) -> Field[Outcome | None] | None:
    """The words of a resolution that state its outcome, or None."""
    found = list(entries(part.source, part.blocks))
    stated = ((text, outcome_of(part.source, plain(text.raw))) for text in _statements(part, found))
    announced = ((text, Outcome.FIXED) for text in _announcements(part, found))
    texts = ((text, outcome) for text, outcome in chain(stated, announced) if outcome)
    return next(
        (Field[Outcome | None](raw=text.raw, span=text.span, value=value) for text, value in texts), None
    )


def outcome_of(source: Source, words: str) -> Outcome | None:
    """The outcome that a phrase means, or None."""
    word = word_for(words, source.vocabulary.outcomes)
    if word is not None:
        return Outcome(word)
    return next((outcome for pattern, outcome in _PHRASES if pattern.search(words)), None)


def stated_outcome(source: Source, text: Text) -> Field[Outcome | None]:
    """A metadata row that states the outcome."""
    outcome = outcome_of(source, plain(text.raw))
    if outcome is None:
        hint = f"one of {', '.join(source.vocabulary.outcomes)}"
        source.report("unknown-word", text.span.line, f"Resolution is {plain(text.raw)!r}", hint=hint)
    return Field[Outcome | None](raw=text.raw, span=text.span, value=outcome)


def _statements(part: Part, found: list[Entry]) -> Iterator[Text]:
    """What may state an outcome, the most explicit first."""
    yield from _headings(part)
    yield from (entry.value for entry in found if squeeze(entry.label) in _STATEMENTS)
    yield from _leads(part)


def _headings(part: Part) -> Iterator[Text]:
    """The headings that state something: ``Status: FIXED``."""
    for heading in (block for block in part.blocks if block.level and block.first >= 0):
        label, _, words = part.source.raw(heading.first, heading.last).partition(":")
        if words and squeeze(label) in _STATEMENTS:
            yield part.source.text(heading.last - len(words.encode()), heading.last)


def _leads(part: Part) -> Iterator[Text]:
    """The bold words that open the section, such as ``**Acceptable as-is** - ...``."""
    first = next((block for block in part.blocks if block.kind == "Paragraph"), None)
    lead = _LEAD.match(part.source.data[first.start : first.end]) if first else None
    if first and lead and not lead[1].rstrip().endswith(b":"):
        yield part.source.text(first.start + lead.start(1), first.start + lead.end(1))


def _announcements(part: Part, found: list[Entry]) -> Iterator[Text]:
    """A heading or label that announces the fix that was made says that one was made."""
    titles = [block for block in part.blocks if block.level and block.first >= 0]
    texts = [part.source.text(block.first, block.last) for block in titles]
    for label, text in [
        *((plain(text.raw), text) for text in texts),
        *((entry.label, entry.value) for entry in found),
    ]:
        if _FIXES.fullmatch(label):
            yield text
