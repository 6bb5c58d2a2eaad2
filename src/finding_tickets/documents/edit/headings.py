"""Adding a section to a document, or text at the top of one, and marking a section as one of the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finding_tickets.documents.blocks import Block
from finding_tickets.documents.edit.lines import added_after, line_at, line_end
from finding_tickets.documents.edit.page import Page, Splices
from finding_tickets.documents.parts import Part
from finding_tickets.documents.roles import Role
from finding_tickets.documents.splice import Splice

_LEVEL = 2
_RULE = b"---"
EARLIER = "Earlier"
"""What the heading of a section begins with that is kept for the record: nothing is read from it."""


def add_section(page: Page, title: str, body: Sequence[str], before: Sequence[Role]) -> Iterator[Splices]:
    """Ways to add a section: before the first one of the given roles, at the end, before every other one."""
    levels = [part.heading.level for part in page.parts if part.heading and part.heading.level > 1]
    texts = ["#" * min(levels, default=_LEVEL) + f" {title}", "", *body]
    lines = [text.encode() for text in texts]
    followers = [part for part in page.parts if part.heading and part.heading.level > 1]
    preferred = [part for part in followers if part.role in before]
    for part in preferred[:1]:
        yield [_before(page, part, lines)]
    yield [_at_end(page, lines)]
    for part in reversed(followers):
        yield [_before(page, part, lines)]


def add_below(page: Page, heading: Block, body: Sequence[str]) -> Splices:
    """Put lines between a heading and what follows it."""
    last = line_at(page.data, page.source.trimmed(heading.start, heading.end)[1])
    lines = [b"", *(text.encode() for text in body)]
    follows = page.data[last.after : line_at(page.data, last.after).end].strip()
    texts = [*lines, b""] if follows else lines
    return [Splice(last.after, last.after, added_after(page.data, last, *texts))]


def mark_earlier(heading: Block) -> Splice:
    """Say of a section that it was true once; its text stays."""
    return Splice(heading.first, heading.first, f"{EARLIER} ".encode())


def _before(page: Page, part: Part, lines: Sequence[bytes]) -> Splice:
    start = line_at(page.data, part.start).start
    end = line_end(page.data, start)
    rule = [_RULE, b""] if _ruled(page) else []
    return Splice(start, start, end.join([*lines, b"", *rule, b""]))


def _at_end(page: Page, lines: Sequence[bytes]) -> Splice:
    data = page.data
    last = line_at(data, len(data))
    blocks = [block for part in page.parts for block in part.blocks]
    ended = not blocks or blocks[-1].kind == "Rule"
    rule = [_RULE, b""] if _ruled(page) and not ended else []
    gap = [] if not data[line_at(data, max(last.start - 1, 0)).start :].strip() else [b""]
    end = line_end(data, len(data))
    unfinished = end if last.start < len(data) else b""
    return Splice(len(data), len(data), unfinished + end.join([*gap, *rule, *lines, b""]))


def _ruled(page: Page) -> bool:
    """Whether the document draws a line between its sections."""
    ends = [part.blocks[-1].kind == "Rule" for part in page.parts[:-1] if part.blocks]
    return sum(ends) * 2 > len(ends)
