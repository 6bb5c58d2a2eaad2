"""A document as sections: a heading, what its title says it is for, the blocks below it, further parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TypeAlias

from finding_tickets.documents.metadata import (
    ALONE,
    LabelledValue,
    Metadata,
    labelled_values,
)
from finding_tickets.documents.source import (
    Block,
    Excerpt,
    MarkdownTable,
    Source,
    Values,
    parse,
    walk,
    words_of,
)
from finding_tickets.model.vocabulary import squeeze

_PROPOSED = r"(?:recommended|suggested|proposed|possible|potential)"
_SOLUTION = r"(?:solutions?|changes?|actions?|approach(?:es)?|mitigations?)"
_ON_RESOLUTION = r"(?:notes?|details?|summary|status|statement|decision|analysis|update|log|history|evidence)"


class SectionKind(Enum):
    """The purpose of a section. The value is a pattern of its titles, in lower case without punctuation.

    The first match counts. Only the pattern of cross-reviews is matched with the title as written.
    """

    METADATA = (
        r"(?:(?:ticket|review|bug|finding|issue) )?(?:metadata|information)"
        r"|(?:bug|defect|finding|incident|issue|ticket) (?:report|info|overview)|report details"
    )
    LOCATION = (
        r"(?:(?:code|affected|file|source|bug) )?(?:location|file)s?|affected code|where"
        r"|lines of code|targets?|(?:likely|suspected|probable) (?:source|file|location)s?"
    )
    FILES_CHANGED = r"files? (?:changed|modified|touched)|(?:changed|modified) files?"
    SUMMARY = r"(?:one line |executive )?summary|overview|tl ?dr"
    PROBLEM = (
        r"(?:the )?(?:problem|symptom|issue|bug)s?(?: statement| description| details?)?"
        r"|(?:finding|vulnerability) (?:description|details?)"
        r"|what s wrong|what happen(?:s|ed)|describe the (?:bug|issue|problem)"
        r"|(?:actual|observed) (?:behaviou?r|results?)"
    )
    DESCRIPTION = (
        r"(?:detailed |full )?(?:description|analysis|details)|technical (?:analysis|details)"
        r"|root cause.*|(?:steps to )?reprod\w+.*|(?:code )?evidence|impact.*|system context"
        r"|context|background|why this matters|current (?:behaviou?r|state|status)"
    )
    FIX = (
        rf"{_PROPOSED} (?:\w+ )?(?:fix(?:es)?|resolution|implementation|code|{_SOLUTION})\b.*"
        rf"|(?:fix|resolution) (?:options?|plan|proposals?)|recommend(?:ed|ations?)|{_SOLUTION}"
    )
    VERIFICATION = (
        r"(?:verification|validation)(?: (?:checklist|steps?|plan|criteria|strategy|results?))?"
        r"|how to (?:verify|validate|test)\b.*|test(?:ing)? plan|testing"
        r"|regression tests?|acceptance criteria|definition of done|.*checklist"
    )
    RELATED = (
        r"related(?: (?:finding|ticket|issue|bug)s?)?(?: and .*)?|see also|linked tickets|dependencies"
        r"|(?:related |known )?duplicates?(?: (?:finding|ticket)s?)?"
    )
    REFERENCES = r"references|links"
    CROSS_REVIEW = (
        r"(?:(?:(?:specialist|expert|agent|domain|independent)s?|reviewer)\W+)?(?:reviews?|verdicts)"
        r"(?: (?:verdicts?|summary|notes))?|reviewers?"
    )
    CORRECTION = (
        r"(?:corrections?|errat(?:um|a)|retract(?:ion|ed)|amendment)\b.*"
        r"|correct(?:ed|ive) (?:fix|action|resolution|status|analysis|verdict|assessment)\b.*"
        r"|(?:fix|resolution|ticket|status|post fix|post closure) corrections?"
    )
    RESOLUTION = (
        rf"(?:final )?(?:resolution|closure|closing|disposition)(?: {_ON_RESOLUTION})*"
        r"|(?:final )?(?:status|decision|outcome)"
        r"|(?:updated|revised) (?:resolution|fix)|resolved|closed|implementation (?:notes|summary)"
        r"|(?:the |final |actual )?fix(?:es)?(?: applied| implemented| description| details| summary)?"
        r"|(?:applied|implemented|final|actual) fix(?:es)?|changes made|fixed"
    )
    REMEDIATION = r"remediation"
    APPENDIX = r"appendix.*|original reports?.*|(?:source )?reports?(?: references?)?"


CROSS_REVIEW_TITLE = re.compile(r"(?i)(?:cross|peer)\W*(?:agent\W*)?reviews?\b")
_TITLES = {kind: re.compile(kind.value, re.IGNORECASE) for kind in SectionKind}
_REVIEWS_TITLE = _TITLES.pop(SectionKind.CROSS_REVIEW)
# A title that is nothing but the name of a section: one of level 1 is not the document's title then.
_PLAIN_TITLE = re.compile(
    r"(?:ticket )?metadata|location|summary|(?:detailed )?description|remediation|verification|appendix"
    r"|related findings|cross review|resolution|recommended fix"
)
_NUMBER = re.compile(r"(?<!\d)(?:\d+[.)]\s+)+")
_ASIDE = re.compile(r"(?s)\(.*|[:\u2013\u2014].*|\s-\s.*")
_SUMMARY_OF_FIX = re.compile(r"(?:\d+ )*resolution summary")
# Without a block of YAML, or what is meant to be one, a remediation is prose on how to fix it.
_BLOCK = re.compile(
    rb"(?mi)^[ \t>]*(?:(?:verifier|variants|run|claims)[ \t]*:|(?:```+|~~~+)[ \t]*ya?ml\b)"
)
_SECTION_LEVEL = 2
# Sections in whose parts a value of the metadata may stand, and what ends its label in a title.
TELLING = (None, SectionKind.SUMMARY, SectionKind.PROBLEM, SectionKind.DESCRIPTION)
_TITLE_END = re.compile(r":|\s*[/&]\s*|\s+and\s+")
# A longer section that is called Status tells how the ticket was resolved.
_LONGEST_STATUS = 60
_RULE = b"---"


# Most titles are those of a template: asking again what they mean would take a fifth of reading a ticket.
@lru_cache(maxsize=1024)
def kind_of_title(title: str) -> SectionKind | None:
    """The kind that a title gives, a number before it and a remark behind it aside; None where not known."""
    if CROSS_REVIEW_TITLE.search(title) or _REVIEWS_TITLE.fullmatch(title.strip()):
        return SectionKind.CROSS_REVIEW
    title = _NUMBER.sub("", title.strip(), count=1)
    names = (words_of(title), words_of(_ASIDE.sub("", title, count=1)))
    return next(
        (
            kind
            for name in names
            for kind, each in _TITLES.items()
            if each.fullmatch(name)
        ),
        None,
    )


@dataclass(eq=False)
class DocumentPart:
    """A heading, None before the first one, and the ``blocks`` up to the next of its level or above.

    Everything is read once, however many extractors ask for it.
    """

    source: Source
    heading: Block | None
    start: int
    end: int
    blocks: tuple[Block, ...]

    @property
    def level(self) -> int:
        """The level of the heading, 0 where there is none."""
        return self.heading.level if self.heading else 0

    @cached_property
    def headline(self) -> Excerpt | None:
        """The text of the heading, if there is one."""
        return self.source.words(self.heading) if self.heading else None

    @property
    def title(self) -> str:
        """The heading's text without markup; empty without a heading."""
        return self.headline.plain if self.headline else ""

    @cached_property
    def name(self) -> str:
        """The title in lower case with single spaces between its words, for comparing."""
        return words_of(self.title)

    @cached_property
    def kind(self) -> SectionKind | None:
        """The kind of the section by its title; the title of a document gives none."""
        if self.level == 1 and not _PLAIN_TITLE.fullmatch(self.name):
            return None
        kind = kind_of_title(self.title)
        if kind is SectionKind.RESOLUTION and _SUMMARY_OF_FIX.fullmatch(self.name):
            # A ticket that was written when all was done may have its metadata under this title.
            stated = b"ticket id" in self.source.data[self.start : self.end].lower()
            return SectionKind.METADATA if stated else kind
        if kind is SectionKind.REMEDIATION and not _BLOCK.search(
            self.source.data, self.start, self.end
        ):
            return SectionKind.FIX
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
        return [
            self.source.table(block) for block in self.blocks if block.kind == "Table"
        ]

    @property
    def paragraphs(self) -> list[Excerpt]:
        """The paragraphs that stand in the part itself."""
        return [
            self.source.whole(block)
            for block in self.blocks
            if block.kind == "Paragraph"
        ]

    @property
    def with_heading(self) -> tuple[Block, ...]:
        """The heading, if there is one, and the blocks."""
        return (self.heading, *self.blocks) if self.heading else self.blocks

    @property
    def headlines(self) -> list[Excerpt]:
        """The text of the heading and of every heading within the part."""
        below = (self.source.words(block) for block in self.blocks if block.level)
        return [self.headline, *below] if self.headline else [*below]

    @cached_property
    def pieces(self) -> tuple[DocumentPart, ...]:
        """The content below the heading, cut at the headings of the highest level within."""
        start = self.heading.end if self.heading else self.start
        level = min((block.level for block in self.blocks if block.level), default=0)
        return tuple(_cut(self.source, self.blocks, start, self.end, level))

    @cached_property
    def parts(self) -> tuple[DocumentPart, ...]:
        """The parts within the part, which begin at its headings of the highest level."""
        return tuple(piece for piece in self.pieces if piece.heading)

    def record(self) -> Values:
        """The fields of a ``Section``, with every byte that belongs to it."""
        source, heading = self.source, self.heading
        below = heading.end if heading else self.start
        return {
            "level": self.level,
            "title": self.title,
            "heading": source.span(self.start, below),
            "body": {
                "raw": source.raw(below, self.end),
                "span": source.span(below, self.end),
            },
            "known": self.kind is not None or self.level <= 1,
        }


PartsByKind: TypeAlias = defaultdict[SectionKind | None, list[DocumentPart]]


def parts_by_kind(parts: Iterable[DocumentPart]) -> PartsByKind:
    """Group sections by their kind; unknown ones are under None."""
    of_kind = PartsByKind(list)
    for part in parts:
        of_kind[part.kind].append(part)
    return of_kind


def read_blocks(source: Source) -> list[Block]:
    """Return the outermost blocks of a document; text that only a rule below makes a heading is none."""
    blocks = parse(source.data)
    headings = [block for block in blocks if block.level]
    # Markdown takes text above a rule for a heading where an empty line is missing. Who underlines titles
    # does so everywhere, and with as many dashes as they have letters; and no title has several lines.
    is_marked = any(source.data.startswith(b"#", each.start) for each in headings)
    for heading in headings:
        ruled = source.data[heading.last : heading.end].strip() == _RULE
        is_text = is_marked or b"\n" in source.data[heading.first : heading.last]
        if ruled and is_text and heading.level == _SECTION_LEVEL:
            message = "no empty line between this text and the rule below it makes the text a heading"
            source.report("heading-rule", heading.start, message)
            heading.kind, heading.level, heading.end = "Paragraph", 0, heading.last
    return blocks


def read_sections(source: Source) -> tuple[DocumentPart, ...]:
    """The document cut at its headings of level 1 and 2 (or of the highest level below the title).

    The parts cover every byte exactly once.
    """
    blocks = read_blocks(source)
    # Some documents have all their sections on level 3, right below the title.
    levels = (block.level for block in blocks if block.level > 1)
    level = max(_SECTION_LEVEL, min(levels, default=_SECTION_LEVEL))
    return tuple(_cut(source, tuple(blocks), 0, len(source.data), level))


def read_metadata(source: Source, parts: Sequence[DocumentPart]) -> Metadata:
    """The labelled values below the title and in the metadata section, and sections that hold only some."""
    levels = [part.level for part in parts]
    # Below a heading about something else, such a section may be one level deeper.
    within = [
        each
        for part in parts
        if part.kind in TELLING and 1 in levels
        for each in part.parts
    ]
    alone = [each for each in (*parts, *within) if each.level > 1 and _is_alone(each)]
    # Without a heading of level 1, the first one is the title, if it begins the document.
    before = [block for part in parts[:1] if not part.level for block in part.blocks]
    is_bare = all(block.kind == "FrontMatter" for block in before) and (
        levels[:1] != [0] or bool(before)
    )
    untitled = 1 not in levels and is_bare
    titles = (
        [part for part in parts if part.level and part not in alone][:1]
        if untitled
        else []
    )
    holding = [
        part
        for part in parts
        if part.kind is SectionKind.METADATA
        or part.level <= 1
        or (part in titles and part.kind is None)
    ]
    metadata = Metadata(source, (block for part in holding for block in part.blocks))
    for part in alone:
        blocks = [block for block in part.blocks if block.kind != "Rule"]
        # What it says beside its value is text of the ticket.
        says_more = (
            len(part.body.raw) > _LONGEST_STATUS and part.kind is SectionKind.RESOLUTION
        )
        says_more = says_more or bool(blocks and ":" in part.title)
        if (
            part.headline
            and metadata.add_section(part.headline, blocks)
            and not says_more
        ):
            part.kind = SectionKind.METADATA
    return metadata


def _is_alone(part: DocumentPart) -> bool:
    """Return True for a section that is called after a value of the metadata: ``Status: open``."""
    if part.kind not in (None, SectionKind.RESOLUTION, SectionKind.DESCRIPTION):
        return False
    return squeeze(_TITLE_END.split(part.title, maxsplit=1)[0]) in ALONE


def title_of(parts: Iterable[DocumentPart], metadata: Metadata) -> Excerpt | None:
    """Return the text of the first heading of level 1, else of the first one that heads no section."""
    headed = [
        part
        for part in parts
        if part.heading and part.heading.first < part.heading.last
    ]
    titles = [part for part in headed if part.level == 1]
    # A file may begin with a section, whose heading is not the title; nor is one where front matter has it.
    if not titles and not metadata.get("Title"):
        titles = [part for part in headed[:1] if part.kind is None]
    return titles[0].headline if titles else None


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
    for index, following, begin, until in zip(
        at, bounds[1:], starts, starts[1:], strict=False
    ):
        yield DocumentPart(
            source, blocks[index], begin, until, blocks[index + 1 : following]
        )
