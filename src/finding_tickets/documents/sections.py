"""A document as sections: a heading with the blocks below it, and further ones within."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import takewhile

from finding_tickets.documents.blocks import Block, MarkdownTable, parse, table_of, walk
from finding_tickets.documents.fields import LabelledValue, labelled_values
from finding_tickets.documents.section_kinds import PLAIN_TITLE, SectionKind, kind_of_title
from finding_tickets.documents.source import Excerpt, Source, Values, words_of

_SECTION_LEVEL = 2
_RULE = b"---"
# The metadata of a ticket that was written when all was done; in another ticket this is a resolution.
_ID_ROW = b"ticket id"


class DocumentPart:
    """A heading with everything up to the next heading of its level or above.

    ``heading`` is None for what precedes the first heading. ``blocks`` leaves the heading out. What is read
    of a part is read once, however many extractors ask for it.
    """

    def __init__(
        self, source: Source, heading: Block | None, start: int, end: int, blocks: tuple[Block, ...]
    ) -> None:
        self.source = source
        self.heading = heading
        self.start = start
        self.end = end
        self.blocks = blocks

    @cached_property
    def headline(self) -> Excerpt | None:
        """The text of the heading, if there is one."""
        return self.source.text(self.heading.first, self.heading.last) if self.heading else None

    @property
    def title(self) -> str:
        """The heading's text without markup; empty where there is no heading."""
        return self.headline.plain if self.headline else ""

    @cached_property
    def name(self) -> str:
        """The title in lower case with single spaces between its words, for comparing."""
        return words_of(self.title)

    @cached_property
    def kind(self) -> SectionKind | None:
        """What the section is for, as far as its title says.

        A heading of level 1 is the document's title, unless it is nothing but the name of a section.
        """
        if self.heading and self.heading.level == 1 and not PLAIN_TITLE.fullmatch(self.name):
            return None
        kind, of_fix = kind_of_title(self.title)
        if of_fix and _ID_ROW in self.source.data[self.start : self.end].lower():
            return SectionKind.METADATA
        return kind

    @cached_property
    def body(self) -> Excerpt:
        """Everything below the heading, without the white space around it and the rule at its end."""
        blocks = [block for block in self.blocks if block.kind != "Rule"]
        bounds = (blocks[0].start, blocks[-1].end) if blocks else (self.end, self.end)
        return self.source.text(*bounds)

    @cached_property
    def entries(self) -> list[LabelledValue]:
        """The labelled values in the part, in the order of the file."""
        return list(labelled_values(self.source, self.blocks))

    @cached_property
    def by_kind(self) -> Mapping[str, list[Block]]:
        """The blocks in the part by their kind, however deep, but for the rows and cells of tables."""
        found: dict[str, list[Block]] = defaultdict(list)
        for block in walk(self.blocks, rows=False):
            found[block.kind].append(block)
        return found

    @property
    def tables(self) -> list[MarkdownTable]:
        """The tables that stand in the part itself, not in a list or a quotation."""
        return [table_of(self.source, block) for block in self.blocks if block.kind == "Table"]

    @property
    def paragraphs(self) -> list[Excerpt]:
        """The paragraphs that stand in the part itself."""
        return [
            self.source.text(block.start, block.end) for block in self.blocks if block.kind == "Paragraph"
        ]

    @property
    def headlines(self) -> list[Excerpt]:
        """The text of the heading and of every heading within the part."""
        headings = [block for block in (self.heading, *self.blocks) if block and block.level]
        return [self.source.text(block.first, block.last) for block in headings]

    @property
    def own_blocks(self) -> tuple[Block, ...]:
        """The blocks before the first heading within the part."""
        return tuple(takewhile(lambda block: block.kind != "Heading", self.blocks))

    @cached_property
    def parts(self) -> tuple[DocumentPart, ...]:
        """The parts within the part, which begin at its headings of the highest level."""
        levels = [block.level for block in self.blocks if block.level]
        if not levels:
            return ()
        within = _cut(self.source, self.blocks, self.start, self.end, min(levels))
        return tuple(part for part in within if part.heading)

    def record(self) -> Values:
        """The fields of a ``Section``, with every byte that belongs to it."""
        source, heading = self.source, self.heading
        below = heading.end if heading else self.start
        return {
            "level": heading.level if heading else 0,
            "title": self.title,
            "heading": source.span(self.start, below),
            "body": {"raw": source.raw(below, self.end), "span": source.span(below, self.end)},
            "known": self.kind is not None or heading is None or heading.level == 1,
        }


def read_sections(source: Source) -> tuple[DocumentPart, ...]:
    """The document cut at its headings of level 1 and 2 (or of the highest level below the title).

    Together the parts cover every byte exactly once.
    """
    blocks = parse(source.data)
    headings = [block for block in blocks if block.level]
    # Markdown takes text above a rule for a heading where an empty line is missing. Who underlines titles
    # does so everywhere, and with as many dashes as they have letters.
    if any(source.data.startswith(b"#", each.start) for each in headings):
        for heading in headings:
            ruled = source.data[heading.last : heading.end].strip() == _RULE
            if ruled and heading.level == _SECTION_LEVEL:
                message = (
                    "no empty line between this text and the rule below it, so Markdown makes it a heading"
                )
                source.report("heading-rule", heading.start, message)
                heading.kind, heading.level, heading.end = "Paragraph", 0, heading.last
    # Some documents have all their sections on level 3, right below the title.
    levels = sorted({block.level for block in blocks if block.level > 1})
    level = max(_SECTION_LEVEL, levels[0]) if levels else _SECTION_LEVEL
    return tuple(_cut(source, tuple(blocks), 0, len(source.data), level))


def nested(parts: Iterable[DocumentPart]) -> Iterator[DocumentPart]:
    """The parts and every part within them."""
    for part in parts:
        yield part
        yield from nested(part.parts)


def _cut(
    source: Source, blocks: tuple[Block, ...], start: int, end: int, level: int
) -> Iterator[DocumentPart]:
    """Cut ``blocks``, which cover ``[start, end)``, at each heading of ``level`` or above."""
    at = [index for index, block in enumerate(blocks) if 0 < block.level <= level]
    bounds = [*at, len(blocks)]
    starts = [*(blocks[index].start for index in at), end]
    if starts[0] > start:
        yield DocumentPart(source, None, start, starts[0], blocks[: bounds[0]])
    for index, following, begin, until in zip(at, bounds[1:], starts, starts[1:], strict=False):
        yield DocumentPart(source, blocks[index], begin, until, blocks[index + 1 : following])
