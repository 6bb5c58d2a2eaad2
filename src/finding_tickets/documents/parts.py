"""A document as parts: a heading with the blocks below it, and parts within parts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from finding_tickets.documents.blocks import Block, parse, walk
from finding_tickets.documents.entries import Entry, entries
from finding_tickets.documents.inline import plain, words_of
from finding_tickets.documents.lazy import lazy
from finding_tickets.documents.roles import PLAIN_TITLES, Role, meaning
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import Section

_SECTION_LEVEL = 2
_RULE = b"---"
# The metadata of a ticket that was written when all was done; in another ticket this is a resolution.
_ID_ROW = b"ticket id"


@dataclass(frozen=True, eq=False)
class Part:
    """A heading with everything up to the next heading of its level or above.

    ``heading`` is None for what precedes the first heading. ``blocks`` leaves the heading out.
    """

    source: Source
    heading: Block | None
    start: int
    end: int
    blocks: tuple[Block, ...]

    @lazy
    def title(self) -> str:
        """The heading's text without markup; empty where there is no heading."""
        heading = self.heading
        return plain(self.source.raw(heading.first, heading.last)) if heading else ""

    @lazy
    def name(self) -> str:
        """The title in lower case with single spaces between its words, for comparing."""
        return words_of(self.title)

    @lazy
    def role(self) -> Role | None:
        """What the section is for, as far as its title says.

        A heading of level 1 is the document's title, unless it is nothing but the name of a section.
        """
        if self.heading and self.heading.level == 1 and self.name not in PLAIN_TITLES:
            return None
        role, of_fix = meaning(self.title)
        if of_fix and _ID_ROW in self.source.data[self.start : self.end].lower():
            return Role.METADATA
        return role

    @property
    def line(self) -> int:
        """The line the part starts on."""
        return self.source.line(self.start)

    @lazy
    def body(self) -> Text:
        """Everything below the heading, without the white space around it and the rule at its end."""
        blocks = [block for block in self.blocks if block.kind != "Rule"]
        if not blocks:
            return self.source.text(self.end, self.end)
        return self.source.text(blocks[0].start, blocks[-1].end)

    @lazy
    def entries(self) -> list[Entry]:
        """The labelled values in the part, in the order of the file."""
        return list(entries(self.source, self.blocks))

    @lazy
    def by_kind(self) -> Mapping[str, list[Block]]:
        """The blocks in the part by their kind, however deep, but for the rows and cells of tables."""
        found: dict[str, list[Block]] = defaultdict(list)
        for block in walk(self.blocks, rows=False):
            found[block.kind].append(block)
        return found

    @lazy
    def own_blocks(self) -> tuple[Block, ...]:
        """The blocks before the first heading within the part."""
        return tuple(takewhile(lambda block: block.kind != "Heading", self.blocks))

    @lazy
    def parts(self) -> tuple[Part, ...]:
        """The parts within the part, which begin at its headings of the highest level."""
        levels = [block.level for block in self.blocks if block.level]
        if not levels:
            return ()
        within = cut(self.source, self.blocks, self.start, self.end, min(levels))
        return tuple(part for part in within if part.heading)


def sections(source: Source) -> tuple[Part, ...]:
    """The document cut at its headings of level 1 and 2 (or of the highest level below the title).

    Together the parts cover every byte exactly once.
    """
    blocks = tuple(_as_meant(source, parse(source.data)))
    levels = sorted({block.level for block in blocks if block.level > 1})
    level = max(_SECTION_LEVEL, levels[0]) if levels else _SECTION_LEVEL
    return tuple(cut(source, blocks, 0, len(source.data), level))


def _as_meant(source: Source, blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks, with text above a rule as text: Markdown takes it for a heading without an empty line.

    Who underlines titles does so everywhere, and with as many dashes as they have letters.
    """
    headings = [block for block in blocks if block.level]
    ruled = {each for each in headings if source.data[each.last : each.end].strip() == _RULE}
    if not ruled or not any(source.data.startswith(b"#", each.start) for each in headings):
        return blocks
    return [
        _text_above_rule(source, each) if each in ruled and each.level == _SECTION_LEVEL else each
        for each in blocks
    ]


def _text_above_rule(source: Source, heading: Block) -> Block:
    message = "no empty line between this text and the rule below it, so Markdown makes it a heading"
    source.report("heading-rule", heading.start, message)
    text = Block("Paragraph", heading.start, heading.last)
    text.first, text.last = heading.first, heading.last
    return text


def nested(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts and every part within them."""
    for part in parts:
        yield part
        yield from nested(part.parts)


def by_role(sections: Iterable[Part]) -> Mapping[Role | None, list[Part]]:
    """The sections of each role, in the order of the file."""
    found: dict[Role | None, list[Part]] = defaultdict(list)
    for part in sections:
        found[part.role].append(part)
    return found


def section(part: Part) -> Section:
    """The record of a section, with every byte that belongs to it."""
    source, heading = part.source, part.heading
    below = heading.end if heading else part.start
    return Section(
        level=heading.level if heading else 0,
        title=part.title,
        heading=source.span(part.start, below),
        body=Text(source.raw(below, part.end), source.span(below, part.end)),
        known=part.role is not None or heading is None or heading.level == 1,
    )


def cut(source: Source, blocks: tuple[Block, ...], start: int, end: int, level: int) -> Iterator[Part]:
    """Cut ``blocks``, which cover ``[start, end)``, at each heading of ``level`` or above."""
    at = [index for index, block in enumerate(blocks) if 0 < block.level <= level]
    bounds = [*at, len(blocks)]
    starts = [*(blocks[index].start for index in at), end]
    if starts[0] > start:
        yield Part(source, None, start, starts[0], blocks[: bounds[0]])
    for index, following, begin, until in zip(at, bounds[1:], starts, starts[1:], strict=False):
        yield Part(source, blocks[index], begin, until, blocks[index + 1 : following])
