"""How a ticket was resolved, as far as its words say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from finding_tickets.markdown.entries import Entry, entries
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.outcomes import outcome_of
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Resolution
from finding_tickets.model.vocabulary import Outcome, squeeze

_STATEMENTS = frozenset(
    ["status", "decision", "finaldisposition", "disposition", "outcome", "resolution", "verdict"]
)
_FIX = re.compile(
    r"(the |final |implemented )*fix(es)?( description| applied| implemented)?( \(.*\))?", re.IGNORECASE
)
_LEAD = re.compile(rb"\*\*([^*]+)\*\*")


def read_resolution(part: Part) -> Resolution:
    """The resolution that a section states; a section that only recommends something states no outcome."""
    outcome, body = read_outcome(part), part.body
    return Resolution(
        raw=body.raw,
        span=body.span,
        outcome=outcome.value if outcome else None,
        proposed=False,
        duplicate_of=None,
    )


def read_outcome(part: Part) -> Field[Outcome | None] | None:
    """The words of a resolution that state its outcome, or None."""
    found, words = list(entries(part.source, part.blocks)), part.source.vocabulary.outcomes
    stated = ((text, outcome_of(plain(text.raw), words)) for text in _statements(part, found))
    announced = ((text, Outcome.FIXED) for text in _announcements(part, found))
    texts = ((text, outcome) for text, outcome in chain(stated, announced) if outcome)
    return next(
        (Field[Outcome | None](raw=text.raw, span=text.span, value=value) for text, value in texts), None
    )


def stated_outcome(source: Source, text: Text) -> Field[Outcome | None]:
    """A metadata row that states the outcome."""
    outcome = outcome_of(plain(text.raw), source.vocabulary.outcomes)
    if outcome is None:
        hint = f"one of {', '.join(source.vocabulary.outcomes)}"
        source.report("unknown-word", text.span.start, f"Resolution is {plain(text.raw)!r}", hint=hint)
    return Field[Outcome | None](raw=text.raw, span=text.span, value=outcome)


def _statements(part: Part, found: list[Entry]) -> Iterator[Text]:
    """What may state an outcome, the most explicit first."""
    yield from _headings(part)
    yield from (entry.value for entry in found if squeeze(entry.label) in _STATEMENTS)
    yield from _leads(part)


def _headings(part: Part) -> Iterator[Text]:
    """The headings that state something: ``Status: FIXED``."""
    for heading in (block for block in part.blocks if block.level):
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
    headings = [block for block in (part.heading, *part.blocks) if block and block.level]
    titles = [part.source.text(block.first, block.last) for block in headings]
    yield from (title for title in titles if _FIX.fullmatch(plain(title.raw)))
    yield from (entry.value for entry in found if _FIX.fullmatch(entry.label))
