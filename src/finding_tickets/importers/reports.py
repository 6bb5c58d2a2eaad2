"""Findings in a report in Markdown: sections, items of lists and rows of tables, each read as a ticket is."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import dropwhile, takewhile
from pathlib import PurePosixPath

from finding_tickets.documents.finding import read_finding
from finding_tickets.documents.locations import EXTENSION
from finding_tickets.documents.metadata import (
    FILES,
    LABELS,
    LINES,
    SEVERITIES,
    labelled_values,
    severity_heading,
    severity_of,
    words_of_only,
)
from finding_tickets.documents.reading import read_document
from finding_tickets.documents.sections import (
    DocumentPart,
    SectionKind,
    kind_of_title,
    read_blocks,
    read_metadata,
    read_sections,
)
from finding_tickets.documents.source import Block, MarkdownTable, Source, key_of, plain
from finding_tickets.errors import BadDataError
from finding_tickets.importers.drafts import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    paragraphs,
    places,
    words,
)
from finding_tickets.importers.sarif import DIGITS, Finding, Spot
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import (
    SUGGESTED,
    Severity,
    Status,
    Vocabulary,
    squeeze,
    word_for,
)
from finding_tickets.register.config_table import extended
from finding_tickets.register.new import Draft

MARK = "report:"

# A heading that names a finding: ``[H-01] ...``, ``PERF-3: ...``, ``Finding 4: ...``, ``#7 - ...``.
_NAMED = re.compile(
    r"(?:\[(?P<id>[A-Z]{1,12}(?:-?[A-Z0-9]+)*-?\d+)\]|(?P<plain_id>(?!(?:P|S|SEV-?)\d\b)(?:[a-uw-z]\d{1,2}(?=:|\s[\u2013\u2014-]\s)|[A-Z]{1,12}(?:-[A-Z0-9]+)*-?\d+))(?=\s*[:.)|\u2013\u2014]|\s-\s"
    # With nothing but a space behind it only such as F-01 is an ID, and "UTF-8" or "A100 (80GB)" are none.
    r"|\s*[(\[](?i:critical|high|medium|moderate|low|info|major|minor)|(?<=\b[A-Z]-\d)\s|(?<=-0\d)\s|(?<=\b[A-Z]-\d\d)\s|$)"
    r"|(?i:finding|issue|bug|vulnerability|problem|defect|improvement|suggestion|observation|concern)s?\s*(?:no\.?\s*)?#?(?P<word_id>[A-Z]{0,4}-?\d+(?:\.\d+)*)(?:/\d+)?"
    r"|#(?P<number>\d+))\s*[:.)|\u2013\u2014-]*\s*(?=\S|$)"
)
# Without a sign behind it, a number counts something in front of a word in small letters: "75 lines".
_NUMBERED = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3})*[.):]|\d{1,3}(?:\.\d{1,3})+|\[\d{1,3}\]|\d{1,3}(?=\s+(?:[A-Z][a-z]|[^\sa-zA-Z])))\s+(?=\S)"
)
_SIGNS = re.compile(r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff\s]+")
# A place in front of a title: ``train.py:10 - ...``.
_BEHIND = r"\s*[:|\u2013\u2014]\s*|\s+-+\s+|\s*$"
_PLACED = re.compile(
    rf"(?:[\w./@+\\-]*\.{EXTENSION}\b[:#]|[\w./@-]+:)L?\d[\dL,:\u2013-]*+(?:{_BEHIND}|\s+(?=[A-Z]))"
    rf"|(?:[\w./@+\\-]*\.{EXTENSION}\b(?![:#]L?\d)|[Ll]ines? \d[\d,\u2013-]*)"
    rf"(?:\s\([Ll](?:ines? |\d)[^)]*\))?(?:{_BEHIND})"
)
# A path within the repository: no call, no address, and with a folder or an extension.
_INSIDE = re.compile(r"(?!/|\w+:|.*\.\.)[^()<>*|]*(?:/|\.\w)[^()<>*|]*")
_BOX = re.compile(r"^\[[ xX]\]\s+")
# ``... (`a.py`)``, ``... (lines 3-7)``.
_PLACE_LAST = re.compile(
    r"\s*\((?:(?P<place>[^()\s]+)(?:,?\s+L[\dL\u2013-]+)?|(?i:lines?):?\s*(?P<lines>~?\d[^()]*))\)$"
)
_SIGNS_LAST = "\u2705\u2713\u2714\u274c\u2717\u2718\u26a0\u2757\ufe0f "
# A severity in front of a title: ``[High] ...``, ``High severity: ...``.
_GRADED = re.compile(
    r"[\[(](?P<tag>[\w /-]{2,20})[\])]\s*:?\s*"
    # "Note: ..." is what people write in front of anything.
    r"|(?!(?i:note|information|normal|small|important|average|suggestion|info)s?\b)"
    r"(?P<word>[^\W\d]+(?:-[^\W\d]+)?|[A-Za-z]{1,4}\d)(?:\s+(?i:severity|priority|risk))?(?:\s*[:|\u2013\u2014]|\s-)\s+(?=\S)"
)
# And one behind it, in brackets or behind a sign.
_LAST = re.compile(
    r"\s*(?:[\[(](?P<tag>[\w\u2190-\U0001faff\ufe0f:/ -]{1,24})[\])]"
    r"|(?P<sign>[\u2190-\U0001faff\ufe0f]+|\s[|:\u00b7\u2013\u2014-])\s*(?P<word>[\w' -]{0,24}))\s*$"
)
_PREFIXES = (_GRADED, _NAMED, _NUMBERED, _PLACED) * 2
# A section may be called after what became of its findings.
_SETTLED = frozenset([Status.FIXED, Status.CLOSED, Status.WONT_FIX, Status.INVALID])
_FINDINGS = re.compile(
    r"(?i)\b(?:(?:must|should)[ -](?:fix|address)\w*|nice[ -]to[ -]have"
    r"|findings?|issues?|bugs?|problems?|vulnerabilit(?:y|ies)|defects?|probl[e\u00e8]me?s?|fehler|m\u00e4ngel)\b"
    r"|\u95ee\u9898|\u554f\u984c|\u7f3a\u9677|\u6f0f\u6d1e|\u0434\u0435\u0444\u0435\u043a\u0442|\u043f\u0440\u043e\u0431\u043b\u0435\u043c"
)
# Signs and bold words at the beginning of a text.
_BOLD = re.compile(r"[^\w*`\[]*\*\*[^*\n]+\*\*")
# A text that begins with one of these labels is a record of a finding.
_FIELDS = re.compile(
    rf"{LABELS.pattern}|title|issue|problem|bug|finding|vulnerability|description|summary"
)
_LABEL = re.compile(r"[*_]*([^*:\n\uff1a]{1,40}?)[*_]*[:\uff1a]")
_TAG = re.compile(r"\[[^\[\]]*\]")
_NAMING_LINE = re.compile(
    r"(?m)^(?:[^\w*`\[\n>|-]*\*\*[^*\n]+\*\*[ \t]*|\[[A-Z]+-?\d+\][ \t]+\S.*)$"
)
_SENTENCE = re.compile(r"(?<=[\w`)\]\"'])[.;:]\s|\s[\u2013\u2014-]\s|\n\s*\n")
_TITLE_COLUMNS = (
    "title finding issue bug problem vulnerability name summary description scenario observation concern gap"
    " defect symptom what detail details explanation item hallazgo debt"
    " descripci\u00f3n probl\u00e8me problema titre"
    " \u95ee\u9898\u63cf\u8ff0 \u95ee\u9898 \u63cf\u8ff0 \u6807\u9898 \u554f\u984c"
    " \u0434\u0435\u0444\u0435\u043a\u0442 \u043f\u0440\u043e\u0431\u043b\u0435\u043c\u0430"
    " \u043e\u043f\u0438\u0441\u0430\u043d\u0438\u0435"
)
_SEVERITY_COLUMNS = re.compile(rf"(?:{SEVERITIES.pattern}|risk|impact|rating).*")
_PLACE_COLUMNS = re.compile(rf"(?:{FILES.pattern}|place|code).*")
_LINE_COLUMNS = re.compile(rf"{LINES.pattern}|(?:code)?locations?")
_ID = re.compile(r"\[?[A-Z]+-?\d+\]?")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*\)")
_SEPARATORS = " :.\u2013\u2014-"
_LONGEST_MARK = len("10. ")
_BOLD_LEVEL = 6
_NO_PATH = "x.md"
_PAGE = "# Finding Ticket: x\n\n## Description\n\n{}\n\n## Recommended Fix\n\n{}\n"
# What chapters of a report are called that find nothing; below the last of them nothing is found either.
_CHAPTER = re.compile(
    r"(?i)(?:introduction|scope|background|method|conclusion|overview|appendix|reference|tool|disclaimer|about"
    r"|executive|summary|contents|limitations|goals?\b"
    r"|none\b|no (?:\w+ ){0,2}(?:issues?|findings?|problems?|bugs?|vulnerabilities)\b).*",
)
_ASIDE = re.compile(
    r"(?i)(?:[\w'\u2019&-]+\s+){0,3}"
    r"(?:good|well|positives?|strengths?|praise|recomm[ae]ndations?(?: summary| prioritaires?)?|next steps"
    r"|action items|conclusions?|plans?"
    r"|roadmap|timeline|checklist|levels?|guide|scale|matrix|rubric|legend|definitions?|classifications?|criteria|categories)"
    r"(?:\s+(?:and|of|for|in|&)\s.*)?(?:\s*\(.*\))?\W*"
    r"|(?:good|positive|well)\b.*\b(?:practices?|points?|parts?|things?|aspects?|observations?|findings?|done|designed)",
)
_INLINE = re.compile(
    r"(?i)\b(?:severity|priority|risk)\W{1,6}(?P<word>[A-Za-z]\w*)|[\[(](?P<tag>[A-Za-z][\w /-]*)[\])]"
    r"|\s\*(?P<sign>\w+)\*(?!\w)",
)
_BY_LETTER = {
    "C": "P0",
    "H": "P1",
    "M": "P2",
    "L": "P3",
    "QA": "P3",
    "N": "P4",
    "NC": "P4",
    "I": "P4",
}


@dataclass(frozen=True, kw_only=True)
class ReportFinding(Finding):
    """A finding in a report; severities are stated in the words of the register or in usual ones."""

    status: Status = Status.OPEN
    description: str = ""
    fix: str = ""


def draft_of_report(
    found: ReportFinding, batch: int | None, agent: str | None, vocabulary: Vocabulary
) -> Draft:
    """Return the content of a ticket about a finding, in the report's own Markdown where that can be."""
    description, fix = found.description, found.fix
    page = _PAGE.format(description, fix or "x").encode()
    document, problems = read_document(page, _NO_PATH, vocabulary)
    levels = [section.level for section in document.sections] if document else []
    if levels != [1, 2, 2] or any(problem.rule != "id-missing" for problem in problems):
        description, fix = (
            paragraphs(description, LONGEST_TEXT),
            paragraphs(fix, LONGEST_TEXT),
        )
    return Draft(
        title=found.text,
        severity=found.severity,
        status=found.status,
        batch=batch,
        agent=agent,
        summary=found.text,
        description=description,
        recommended_fix=fix,
        locations=tuple(places(found.spots)),
    )


def findings_in(data: bytes, path: str, vocabulary: Vocabulary) -> list[ReportFinding]:
    """Return every finding of the report at ``path``, in its order.

    Raises:
        BadDataError: It is not text, or nothing in it looks like a finding.
    """
    try:
        text = data.decode().replace("\0", " ").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise BadDataError(f"not a report: {error}", file=path) from None
    # What a path says of a ticket, its name and its folder, a report's path does not say of its findings.
    vocabulary = replace(
        vocabulary,
        severities=extended(SUGGESTED["severities"], vocabulary.severities),
        statuses=extended(SUGGESTED["statuses"], vocabulary.statuses),
    )
    text = _NAMING_LINE.sub(lambda line: _mark_heading(line[0], vocabulary), text)
    source = Source(_NO_PATH, text.encode(), vocabulary)
    found, ranks = list[ReportFinding](), Counter[str]()
    blocks = tuple(
        block for block in read_blocks(source) if block.kind != "FrontMatter"
    )
    whole = _Section(DocumentPart(source, None, 0, len(source.data), blocks))
    for piece in _pieces(whole):
        line, said = source.line(piece.start), piece.head.title or piece.text.title
        if piece.is_left_out:
            found.append(
                ReportFinding(
                    fingerprint=f"{MARK}{line}",
                    tool=path,
                    rule=piece.head.heading,
                    text=piece.head.heading,
                    severity=None,
                    spots=(Spot(path, path, (line, line)),),
                    left_out="neither a number nor a severity or a place makes this heading a finding",
                )
            )
        elif key := squeeze(said):
            # By its title, since numbers change and lines move; equal titles are told apart by their order.
            identity = json.dumps([path, key, ranks[key]])
            ranks[key] += 1
            fingerprint = MARK + hashlib.sha256(identity.encode()).hexdigest()[:DIGITS]
            found.append(
                _finding(
                    piece, path, words(said, LONGEST_TITLE).rstrip(".:"), fingerprint
                )
            )
    if all(each.left_out for each in found):
        hint = "a finding is a heading, a list item or a row of a table, with a number, a severity or a place"
        raise BadDataError(
            "nothing in this report looks like a finding", file=path, hint=hint
        )
    return sorted(found, key=lambda each: each.left_out)


def _mark_heading(line: str, vocabulary: Vocabulary) -> str:
    """Return a line as a heading if it names a finding: ``**1. Title**``, ``[H-1] Title``."""
    head = _read_head(plain(line), vocabulary)
    is_named = head.title and (head.is_named or head.is_numbered or head.severity)
    return f"{'#' * _BOLD_LEVEL} {line}" if is_named else line


def _finding(piece: _Piece, path: str, title: str, fingerprint: str) -> ReportFinding:
    """Return what a piece of the report at ``path`` says, read as a ticket."""
    text, row = piece.text, piece.row or piece.text
    status = text.ticket.status or row.ticket.status
    description, fix = text.description_and_fix
    spots = text.spots or row.spots
    if not (spots and spots[0].lines):
        # The heading may say where it is, or in which lines of the file.
        file = f"`{spots[0].uri}` " if spots else piece.above.place
        told = _Passage.of_text(
            f"{file}{piece.head.heading}", text.source.vocabulary
        ).spots
        spots = told if told and (told[0].lines or not spots) else spots
    return ReportFinding(
        fingerprint=fingerprint,
        tool=path,
        rule=piece.head.heading,
        text=title,
        severity=text.severity or piece.severity,
        status=(status and status.value)
        or piece.head.status
        or piece.above.status
        or Status.OPEN,
        spots=spots,
        description=description or piece.head.heading,
        fix=fix,
    )


@dataclass(frozen=True)
class _Head:
    """A heading taken apart."""

    heading: str
    title: str
    names: set[str]  # its ID and title, as they are compared
    severity: Severity | None = None
    implied: Severity | None = None  # by the letter or word of its ID
    status: Status | None = None
    is_named: bool = False
    is_numbered: bool = False


@dataclass(eq=False)
class _Passage:
    """A text that may be a finding, cut at its headings and read as a ticket is."""

    source: Source
    parts: Sequence[DocumentPart]

    @classmethod
    def of_text(cls, text: str, vocabulary: Vocabulary) -> _Passage:
        """Return a text that does not stand in the report as it is."""
        source = Source(_NO_PATH, text.encode(), vocabulary)
        return cls(source, read_sections(source))

    @cached_property
    def ticket(self) -> Ticket:
        """The ticket that this text would be."""
        # It begins below its heading: none of those within it is its title.
        start = self.parts[0].start if self.parts else 0
        below = DocumentPart(self.source, None, start, start, ())
        return read_finding(
            self.parts, read_metadata(self.source, [below, *self.parts]), None
        )

    @cached_property
    def severity(self) -> Severity | None:
        """The severity that the text states under a label."""
        ticket = self.ticket
        if ticket.severity:
            return ticket.severity.value
        # Behind this label there may be a sentence as well.
        risk = ticket.metadata.get("Risk")
        return severity_heading(risk.raw, self.source.vocabulary) if risk else None

    @property
    def title(self) -> str:
        """The text under a label such as ``Issue``, or the first sentence."""
        summary = self.ticket.summary
        return (
            plain(_SENTENCE.split(summary.raw.strip(), maxsplit=1)[0])
            if summary
            else ""
        )

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The places of the finding: those under labels, else those that the text cites."""
        spots = []
        for each in self.ticket.locations:
            file, symbol = each.file or "", each.symbol or ""
            place = PurePosixPath(file).as_posix() if _INSIDE.fullmatch(file) else None
            for lines in each.lines or [None]:
                spots.append(
                    Spot(
                        file,
                        place,
                        (lines.first, lines.last) if lines else None,
                        symbol,
                    )
                )
        return tuple(spot for spot in spots if spot.uri)

    @property
    def description_and_fix(self) -> tuple[str, str]:
        """The text without its fix and the labels at its beginning, and the recommended fix."""
        shown, fix = [], None
        for part in self.parts:
            if part.kind is SectionKind.FIX and fix is None:
                fix = self._with_bold_headings(part.blocks)
            else:
                shown.append(
                    self._with_bold_headings(
                        [*dropwhile(self._is_label, part.with_heading)]
                    )
                )
        if fix is None:
            labelled = self.ticket.recommended_fix
            fix = labelled.raw if labelled else ""
        return "\n\n".join(filter(None, shown)), fix

    def _with_bold_headings(self, blocks: Sequence[Block]) -> str:
        """Return blocks with bold lines in the place of headings, so that they fit in one section."""
        if blocks and blocks[-1].kind == "Rule":
            blocks = blocks[:-1]
        if not blocks:
            return ""
        pieces, at = [], blocks[0].start
        for block in blocks:
            if block.level:
                pieces += [
                    self.source.raw(at, block.start),
                    f"**{self.source.words(block).plain}**\n",
                ]
                at = block.end
        return "".join([*pieces, self.source.raw(at, blocks[-1].end)]).strip()

    def _is_label(self, block: Block) -> bool:
        """Return True for a rule, and for labelled values alone that a ticket has in its metadata."""
        entries = list(labelled_values(self.source, [block], LABELS))
        if not entries:
            return block.kind == "Rule"
        # Behind the mark of an item, if it is one; the labels of a table may stand below its header.
        behind = entries[0].start - self.source.whole(block).start
        is_first = behind <= _LONGEST_MARK or block.kind == "Table"
        return is_first and all(LABELS.fullmatch(each.key) for each in entries)


@dataclass
class _Piece:
    """A finding: a section, an item of a list or a row of a table."""

    block: Block  # its heading, the item or paragraph, or the table
    start: int
    head: _Head
    text: _Passage
    severity: Severity | None  # by its heading, or a heading above
    above: _Section  # the section that it is, or stands in
    is_left_out: bool = False  # whether it is a heading that only looks like a finding
    row: _Passage | None = None  # what the row of a table says of the same finding


class _Section:
    """A part of the report, or all of it, and what its heading and those above say of all below it."""

    def __init__(self, part: DocumentPart, above: _Section | None = None) -> None:
        vocabulary, heading = part.source.vocabulary, part.title
        self.part, self.above, self.head = part, above, _read_head(heading, vocabulary)
        self.group = severity_heading(heading, vocabulary)
        # Below a severity with a remark there may be nothing but headings of findings: ``P2 - later``.
        is_first = bool(part.blocks) and part.blocks[0].level > 0
        if is_first and not (
            self.head.is_named or any(each.kind for each in part.parts)
        ):
            self.group = self.group or self.head.severity
        self.severity: Severity | None = self.group or (
            above.severity if above else None
        )
        # Whether it, or what it stands in, is called findings, or something that is no finding.
        self.finds: bool = bool(_FINDINGS.search(heading) or (above and above.finds))
        # Below a severity, or with a number below findings, it is one of them.
        is_one = above and (
            above.group
            or (above.finds and (self.head.is_named or self.head.is_numbered))
        )
        is_aside = not is_one and _ASIDE.fullmatch(self.head.title)
        self.aside: bool = part.level > 1 and bool(is_aside or (above and above.aside))
        stated = _SETTLED.intersection(words_of_only(heading, vocabulary.statuses))
        self.status: Status | None = (
            Status(min(stated)) if stated else above.status if above else None
        )
        # Findings may be sorted by their files.
        self.place: str = (
            f"`{heading}` "
            if _PLACED.fullmatch(heading)
            else above.place
            if above
            else ""
        )
        self.text = _Passage(part.source, part.pieces)

    @property
    def sections(self) -> Iterator[_Section]:
        """The sections right below it, and deeper ones before the first of them."""
        for piece in self.part.pieces:
            for part in [piece] if piece.heading else piece.parts:
                # A bold line within a finding is a step of it.
                if part.level < _BOLD_LEVEL or not self.head.is_named:
                    yield _Section(part, self)

    @cached_property
    def is_chapter(self) -> bool:
        """Return True for a summary, and for a table of findings or nothing but tables."""
        told = [
            each
            for each in self.part.tables
            if _title_column(each) and each.column(_SEVERITY_COLUMNS)
        ]
        if told or all(block.kind == "Table" for block in self.part.blocks):
            return not self.head.is_named
        outer = self.above.head.heading if self.above and not self.head.is_named else ""
        return SectionKind.SUMMARY in (
            kind_of_title(self.head.heading),
            kind_of_title(outer),
        )

    @cached_property
    def is_placed(self) -> bool:
        """Return True if its text names a place in the repository."""
        return any(spot.path for spot in self.text.spots)

    def may_be_a_finding(self) -> bool:
        """Return True if a section that states no severity has the form of a finding."""
        outer, head = self.above, self.head
        if head.is_named or outer is None:
            return head.is_named
        is_other = self.aside or self.part.level == 1 or self.is_chapter
        is_other = is_other or bool(
            _CHAPTER.match(head.title) or kind_of_title(head.heading)
        )
        if outer.group:
            return head.is_numbered or not is_other
        # Chapters have numbers, too.
        is_one = self.severity is not None or (outer.part.level > 1 and outer.finds)
        return head.is_numbered and not is_other and (is_one or self.is_placed)


def _pieces(whole: _Section) -> list[_Piece]:
    """Return what the report finds: its sections, then items and rows that no such section has."""
    pieces = _within(whole)
    # Beside findings that are called so there are chapters, whatever places these name.
    is_found = any(
        piece.above.finds and (piece.head.is_named or piece.severity)
        for piece in pieces
    )
    for piece in pieces:
        is_told = piece.above.finds or piece.head.is_named or piece.severity
        piece.is_left_out |= bool(is_found and piece.block.level and not is_told)
    rows = [piece for piece in pieces if piece.block.kind == "Table"]
    found = [piece for piece in pieces if piece.block.kind != "Table"]
    # A table may sum up what is told in sections: there it adds what they leave out. Each row of one
    # table is a finding of its own.
    for row in rows:
        for piece in found:
            if piece.block is not row.block and piece.head.names & row.head.names:
                piece.severity = piece.severity or row.severity
                piece.row, piece.is_left_out = row.text, False
                break
        else:
            found.append(row)
    return sorted(found, key=lambda each: each.start)


def _within(section: _Section) -> list[_Piece]:
    """Return the finding that a section is, or else those in it."""
    head, part, block = section.head, section.part, section.part.heading
    may_be, whole = section.group is None, None
    if block:
        is_own = part.level > 1 and not (section.is_chapter or section.aside)
        own = section.text.severity if is_own else None
        severity = head.severity or own or section.severity or head.implied
        whole = _Piece(block, block.start, head, section.text, severity, section)
        if may_be and ((head.severity and head.title) or own):
            return [whole]
    found = [piece for each in section.sections for piece in _within(each)]
    is_summary = kind_of_title(head.heading) is SectionKind.SUMMARY
    # What may be a finding is none where sections within it are.
    is_innermost = all(each.is_left_out or not each.block.level for each in found)
    if whole and may_be and is_innermost and section.may_be_a_finding():
        return [whole]
    for block in takewhile(lambda block: not block.level, part.blocks):
        if block.kind == "Table":
            found += _rows(block, section)
        elif block.kind in ("List", "Paragraph") and not (section.aside or is_summary):
            items = (_item(item, section) for item in block.children or [block])
            found += filter(None, items)
    # Of what is nothing else the innermost heading is said, unless it stands with a place below findings.
    if whole and not (
        found
        or part.parts
        or part.tables
        or part.level == 1
        or _CHAPTER.match(part.title)
    ):
        is_found = section.above and section.above.finds and section.is_placed
        whole.is_left_out = (
            not is_found or section.aside or kind_of_title(part.title) is not None
        )
        return [whole]
    return found


def _item(block: Block, here: _Section) -> _Piece | None:
    """Return the finding that an item of a list is, or a paragraph that begins with a severity."""
    source, vocabulary = here.part.source, here.part.source.vocabulary
    first, _, rest = source.raw(source.words(block).start, block.end).partition("\n")
    text = _BOX.sub("", f"{first}\n{textwrap.dedent(rest)}".strip(), count=1)
    passage = _Passage.of_text(f"{here.place}{text}", vocabulary)
    label = _LABEL.match(text)
    # Bold words are one piece of its text, and what follows is cut at its sentences.
    bold = _BOLD.match(text)
    pieces = (
        [bold[0], *_SENTENCE.split(text[bold.end() :])]
        if bold
        else _SENTENCE.split(text)
    )
    if label and _FIELDS.fullmatch(key_of(label[1])):
        pieces = [passage.title]
    severity, head = None, _read_head("", vocabulary)
    for piece in pieces:
        head = _read_head(plain(piece.lstrip(_SEPARATORS)), vocabulary)
        severity = severity or head.severity
        if head.title and not _TAG.fullmatch(head.title):
            break
    if block.checked and not head.status:
        head = replace(head, status=Status.CLOSED)
    # ``Severity: high`` or ``(high)``
    inline = (
        severity_of(each[each.lastindex or 0], vocabulary)
        for each in _INLINE.finditer(plain(text))
    )
    severity = severity or next(filter(None, inline), None) or passage.severity
    is_found = block.kind == "Item" or (severity and bold)
    severity = severity or here.severity or head.implied
    if not (
        is_found and head.title and (bold or passage.spots) and (severity or here.finds)
    ):
        return None
    return _Piece(block, block.start, head, passage, severity, here)


def _rows(block: Block, here: _Section) -> Iterator[_Piece]:
    """Yield the rows of a table of findings: with a title, and a severity or a place."""
    vocabulary, table = here.part.source.vocabulary, here.part.source.table(block)
    named = _title_column(table)
    severe, placed = (
        table.column(_SEVERITY_COLUMNS, named),
        table.column(_PLACE_COLUMNS, named),
    )
    is_found = here.finds or _FINDINGS.search(named or "")
    if (
        named is None
        or here.aside
        or not (severe or here.severity or (placed and is_found))
    ):
        return
    lined = table.column(_LINE_COLUMNS, named, placed)
    labels = {severe: "Severity", placed: "Location", lined: "Lines"}
    for row in table.records:
        head = _read_head(row[named].plain, vocabulary)
        lines = []
        for title, cell in row.items():
            if title == named or not cell.raw:
                continue
            lines.append(f"**{labels.get(title, title.capitalize())}:** {cell.raw}")
            # A severity such as P1 has the form of an ID.
            if title != severe and _ID.fullmatch(cell.plain):
                head.names.add(squeeze(cell.plain))
        text = _Passage.of_text("\n".join(lines), vocabulary)
        severity = text.severity or head.severity or here.severity
        if head.title and (severity or placed):
            yield _Piece(block, row[named].start, head, text, severity, here)


def _title_column(table: MarkdownTable) -> str | None:
    """Return the column with the titles of findings."""
    for name in _TITLE_COLUMNS.split():
        for title in table.titles:
            if name in title.split() and "id" not in title.split():
                return title
    return None


def _read_head(heading: str, vocabulary: Vocabulary) -> _Head:
    """Take a heading apart: numbers, IDs, places, severities and states around its title."""
    heading = _LINK.sub(r"\1", heading).replace("\\.", ".").replace("~~", "")
    rest, found = heading, dict[re.Pattern[str], re.Match[str]]()
    severity, signed, status = None, None, None
    for pattern in _PREFIXES:
        if signs := _SIGNS.match(rest):
            signed = signed or severity_of(signs[0], vocabulary)
            rest = rest[len(signs[0]) :]
        match = pattern.match(rest)
        if match is None or pattern in found:
            continue
        if pattern is _GRADED:
            severity = severity_of(match["tag"] or match["word"], vocabulary)
        if severity or pattern is not _GRADED:
            found[pattern] = match
            rest = rest[match.end() :]
    # Behind the title there may be a severity, a state or both.
    while last := _LAST.search(rest):
        word = last["tag"] or last["word"] or last["sign"]
        graded, state = (
            severity_of(word, vocabulary),
            word_for(word, vocabulary.statuses),
        )
        if not (graded or state):
            break
        severity, status, rest = (
            severity or graded,
            status or state,
            rest[: last.start()],
        )
    names, implied = set[str](), None
    if named := found.get(_NAMED):
        names |= {
            squeeze(each) for each in named.groups() if each and not each.isdigit()
        }
        series = re.split(r"[-\d]", named["id"] or named["plain_id"] or "")[0]
        implied = severity_of(_BY_LETTER.get(series, series), vocabulary)
    if not severity and (severity := severity_of(rest, vocabulary)):
        rest = ""
    rest = rest.rstrip(_SIGNS_LAST)
    if (place := _PLACE_LAST.search(rest)) and (
        place["lines"] or _PLACED.match(place["place"].strip("`"))
    ):
        rest = rest[: place.start()]
    title = rest.strip(" :|\u2013\u2014-").rstrip(".")
    if title:
        names.add(squeeze(title))
    return _Head(
        heading=heading,
        title=title,
        names=names,
        severity=severity or signed,
        implied=implied,
        status=Status(status) if status else None,
        is_named=_NAMED in found,
        is_numbered=_NUMBERED in found,
    )
