"""A document as parts: a heading with the blocks below it, and parts within parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from finding_tickets.markdown.blocks import Block, parse
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.source import Source
from finding_tickets.model.record import Text

_SECTION_LEVEL = 2
_RULE = b"---"
_NOT_A_WORD = re.compile(r"[^\w]+")


@dataclass(frozen=True)
class Part:
    """A heading with everything up to the next heading of its level or above.

    ``heading`` is None for what precedes the first heading. ``blocks`` leaves the heading out.
    """

    source: Source
    heading: Block | None
    start: int
    end: int
    blocks: tuple[Block, ...]

    @cached_property
    def title(self) -> str:
        """The heading's text without markup; empty where there is no heading."""
        heading = self.heading
        return plain(self.source.raw(heading.first, heading.last)) if heading else ""

    @cached_property
    def name(self) -> str:
        """The title in lower case with single spaces between its words, for comparing."""
        return words_of(self.title)

    @property
    def line(self) -> int:
        """The line the part starts on."""
        return self.source.line(self.start)

    @cached_property
    def body(self) -> Text:
        """Everything below the heading, without the white space around it and the rule at its end."""
        blocks = [block for block in self.blocks if block.kind != "Rule"]
        if not blocks:
            return self.source.text(self.end, self.end)
        return self.source.text(blocks[0].start, blocks[-1].end)

    @cached_property
    def own_blocks(self) -> tuple[Block, ...]:
        """The blocks before the first heading within the part."""
        return tuple(takewhile(lambda block: block.kind != "Heading", self.blocks))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The part cut at its headings of the highest level; what precedes them comes first, if anything."""
        levels = [block.level for block in self.blocks if block.level]
        return tuple(cut(self.source, self.blocks, self.start, self.end, min(levels, default=0)))


def words_of(title: str) -> str:
    """A title in lower case with single spaces between its words."""
    return _NOT_A_WORD.sub(" ", title.lower()).strip()


def sections(source: Source) -> tuple[Part, ...]:
    """The document cut at its headings of level 1 and 2 (or of the highest level below the title).

    Together the parts cover every byte exactly once.
    """
    blocks = tuple(_as_meant(source, parse(source.data)))
    levels = sorted({block.level for block in blocks if block.level > 1})
    level = max(_SECTION_LEVEL, levels[0]) if levels else _SECTION_LEVEL
    return tuple(cut(source, blocks, 0, len(source.data), level))


def _as_meant(source: Source, blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, with text above a rule as text: Markdown takes it for a heading without an empty line.

    Who underlines titles does so everywhere, and with as many dashes as they have letters.
    """
    marked = any(block.level and source.data.startswith(b"#", block.start) for block in blocks)
    for block in blocks:
        underlined = marked and block.level == _SECTION_LEVEL
        if not underlined or source.data[block.last : block.end].strip() != _RULE:
            yield block
            continue
        message = "no empty line between this text and the rule below it, so Markdown makes it a heading"
        source.report("heading-rule", block.start, message)
        text = Block("Paragraph", block.start, block.last)
        text.first, text.last = block.first, block.last
        yield text


def nested(parts: Iterable[Part]) -> Iterator[Part]:
    """The parts and every part within them."""
    for part in parts:
        yield part
        yield from nested(each for each in part.parts if each.heading)


def cut(source: Source, blocks: tuple[Block, ...], start: int, end: int, level: int) -> Iterator[Part]:
    """Cut ``blocks``, which cover ``[start, end)``, at each heading of ``level`` or above."""
    at = [index for index, block in enumerate(blocks) if 0 < block.level <= level]
    bounds = [*at, len(blocks)]
    starts = [*(blocks[index].start for index in at), end]
    if starts[0] > start:
        yield Part(source, None, start, starts[0], blocks[: bounds[0]])
    for index, following, begin, until in zip(at, bounds[1:], starts, starts[1:], strict=False):
        yield Part(source, blocks[index], begin, until, blocks[index + 1 : following])
