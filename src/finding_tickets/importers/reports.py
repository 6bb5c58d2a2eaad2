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
from finding_tickets.documents.locations import line_ranges, place_of
from finding_tickets.documents.metadata import LABELS, labelled_values, word_in
from finding_tickets.documents.reading import read_document
from finding_tickets.documents.sections import (
    DocumentPart,
    SectionKind,
    kind_of_title,
    read_metadata,
    read_sections,
)
from finding_tickets.documents.source import Block, MarkdownTable, Source, parse, plain
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
from finding_tickets.model.vocabulary import SUGGESTED, Severity, Status, Vocabulary, squeeze, word_for
from finding_tickets.register.new import Draft

MARK = "report:"

# A heading that names a finding: ``[H-01] ...``, ``PERF-3: ...``, ``Finding 4: ...``, ``#7 - ...``.
_NAMED = re.compile(
    r"(?:\[(?P<id>[A-Z]{1,12}(?:-?[A-Z0-9]+)*-?\d+)\]|(?P<plain_id>[a-uw-z]\d{1,2}(?=:|\s[\u2013\u2014-]\s)|[A-Z]{1,12}(?:-[A-Z0-9]+)*-?\d+)(?=\s*[:.)|\u2013\u2014]|\s-\s"
    # With nothing but a space behind it only such as F-01 is an ID, and "UTF-8" or "A100 (80GB)" are none.
    r"|\s*[(\[](?i:critical|high|medium|moderate|low|info|major|minor)|(?<=\b[A-Z]-\d)\s|(?<=-0\d)\s|(?<=\b[A-Z]-\d\d)\s)"
    r"|(?i:finding|issue|bug|vulnerability|problem|defect)s?\s*(?:no\.?\s*)?#?(?P<word_id>[A-Z]{0,4}-?\d+(?:\.\d+)*)"
    r"|#(?P<number>\d+))\s*[:.)|\u2013\u2014-]*\s*(?=\S)"
)
# Without a sign behind it, a number counts something in front of a word in small letters: "75 lines".
_NUMBERED = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3})*[.):]|\d{1,3}(?:\.\d{1,3})+|\[\d{1,3}\]|\d{1,3}(?=\s+(?:[A-Z][a-z]|[^\sa-zA-Z])))\s+(?=\S)"
)
_SIGNS = re.compile(r"[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff\s]+")
# A path within the repository: no call, no address, and with a folder or an extension.
_INSIDE = re.compile(r"(?!/|\w+:|.*\.\.)[^()<>*|]*(?:/|\.\w)[^()<>*|]*")
_BEFORE_ITEM = re.compile(r"^(?:\[[ xX]\]\s+)?[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff\s]*")
# ``... (`a.py`)``, ``... (lines 3-7)``.
_PLACE_LAST = re.compile(r"\s*\((?:(?P<place>[^()\s]+)|(?i:lines?):?\s*(?P<lines>~?\d[^()]*))\)$")
_PLACE_FIRST = re.compile(r"`(?P<place>[^`\s]+)`[\s:\u2013\u2014-]*(?=\S)")
_SIGNS_LAST = "\u2705\u2713\u2714\u274c\u2717\u2718\u26a0\u2757\ufe0f "
_SIGN = re.compile(r"[\u2300-\u2bff\U0001f000-\U0001faff]")
# A severity in front of a title: ``[High] ...``, ``High severity: ...``.
_GRADED = re.compile(
    r"[\[(](?P<tag>[\w /-]{2,20})[\])]\s*:?\s*"
    r"|(?P<word>[\w-]{2,14})(?:\s+(?i:severity|priority|risk))?(?:\s*[:|\u2013\u2014]|\s-)\s+(?=\S)"
)
# And one behind it, in brackets or behind a sign.
_LAST = re.compile(
    r"\s*(?:[\[(](?P<tag>[\w\u2190-\U0001faff\ufe0f:/ -]{1,24})[\])]"
    r"|(?P<sign>[\u2190-\U0001faff\ufe0f]+|\s[|:\u00b7\u2013\u2014-])\s*(?P<word>[\w -]{0,24}))\s*$"
)
_PREFIXES = (_NAMED, _NUMBERED, _GRADED) * 2
_FINDINGS = re.compile(
    r"(?i)\b(?:findings?|issues?|bugs?|problems?|vulnerabilit(?:y|ies)|defects?|probl[e\u00e8]me?s?|fehler|m\u00e4ngel)\b"
    r"|\u95ee\u9898|\u554f\u984c|\u7f3a\u9677|\u6f0f\u6d1e|\u0434\u0435\u0444\u0435\u043a\u0442|\u043f\u0440\u043e\u0431\u043b\u0435\u043c"
)
_WORDS = re.compile(r"[^\W_]+")
_FILLER = re.compile(
    r"(?i)(?:severity|priority|risk|issue|finding|probl[e\u00e8]me?|bug|level|item|concern|defect|vulnerabilit(?:y|ie)"
    r"|x|and|or|to|the|must|should|could|fixe?|be|fixed|before|merge|nice|have)s*|\d+",
)
# These head other sections as well.
_WEAK = re.compile(r"(?i:note|information|normal|small|important|average|suggestion)s?|[Ii]nfo")
_BOLD = re.compile(r"\*\*(?P<lead>[^*\n]+)\*\*")
_SENTENCE = re.compile(r"(?<=[\w`)\]\"'])[.;:]\s|\s[\u2013\u2014-]\s|\n\s*\n")
_TITLE_COLUMNS = (
    "title finding issue bug problem vulnerability name summary description scenario observation concern gap"
    " defect symptom what detail details item probl\u00e8me problema titre"
    " \u95ee\u9898\u63cf\u8ff0 \u95ee\u9898 \u63cf\u8ff0 \u6807\u9898 \u554f\u984c"
    " \u0434\u0435\u0444\u0435\u043a\u0442 \u043f\u0440\u043e\u0431\u043b\u0435\u043c\u0430"
    " \u043e\u043f\u0438\u0441\u0430\u043d\u0438\u0435"
)
_SEVERITY_COLUMNS = re.compile(
    r"(?i)(?:severity|priority|risk|impact|rating|criticality|s\u00e9v\u00e9rit\u00e9|gravit\u00e9|priorit\u00e9"
    r"|schweregrad|priorit\u00e4t|severidade?|prioridade?|\u4e25\u91cd\w*|\u4f18\u5148\u7ea7|\u91cd\u8981\u5ea6"
    r"|\u043f\u0440\u0438\u043e\u0440\u0438\u0442\u0435\u0442|\u0441\u0435\u0440\u044c[\u0435\u0451]\u0437\u043d\u043e\u0441\u0442\u044c"
    r"|\u043a\u0440\u0438\u0442\u0438\u0447\u043d\u043e\u0441\u0442\u044c)\b.*"
)
_PLACE_COLUMNS = re.compile(
    r"(?:affected |source |code )?(?:files?|locations?|paths?|where|places?|code|fichier|datei"
    r"|archivo|arquivo|\u6587\u4ef6|\u4f4d\u7f6e|\u0444\u0430\u0439\u043b)(?:\(s\))?.*"
)
_LINE_COLUMNS = re.compile(r"(?:code )?(?:locations?|lines?)(?:\(s\))?")
_NO_TITLE_COLUMNS = re.compile(
    r"(?i)(?:affected |source |code )?(?:file|location|path|where|place|code)|severity|priority|risk|impact"
    r"|rating|rule|categor|type|status|owner|date|id\b|likelihood|mitigation"
)
_ID = re.compile(r"\[?[A-Z]+-?\d+\]?")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]*\)")
_SEPARATORS = " :.\u2013\u2014-"
_LONGEST_MARK = len("10. ")
_NO_PATH = "x.md"
_PAGE = "# Finding Ticket: x\n\n## Description\n\n{}\n\n## Recommended Fix\n\n{}\n"
# What chapters of a report are called that find nothing; below the last of them nothing is found either.
_CHAPTER = re.compile(
    r"(?i)(?:introduction|scope|background|method|conclusion|overview|appendix|reference|tool|disclaimer|about"
    r"|executive|summary|contents|limitations|goals?\b"
    r"|none\b|no (?:\w+ ){0,2}(?:issues?|findings?|problems?|bugs?|vulnerabilities)\b).*",
)
_REMARK = re.compile(r"(?<=\w)\s*\([^()]*\)\s*$")
_ASIDE = re.compile(
    r"(?i)(?:[\w'\u2019&-]+\s+){0,3}"
    r"(?:good|well|positives?|strengths?|praise|recomm[ae]ndations?(?: summary| prioritaires?)?|next steps"
    r"|action items|conclusions?|plans?"
    r"|roadmap|timeline|checklist|levels?|definitions?|classifications?|criteria|legend|categories)"
    r"(?:\s+(?:and|of|for|in|&)\s.*)?(?:\s*\(.*\))?\W*"
    r"|(?:good|positive|well)\b.*\b(?:practices?|points?|parts?|things?|aspects?|observations?|findings?|done|designed)",
)
_INLINE = re.compile(
    r"(?i)\b(?:severity|priority|risk)\W{1,6}(?P<word>[A-Za-z]\w*)|[\[(](?P<tag>[A-Za-z][\w /-]*)[\])]",
)
_BY_LETTER = {"C": "P0", "H": "P1", "M": "P2", "L": "P3", "QA": "P3", "N": "P4", "NC": "P4", "I": "P4"}
_NOT_CRITICAL = re.compile(r"(?i)\bnon-?critical\b")


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
        description, fix = paragraphs(description, LONGEST_TEXT), paragraphs(fix, LONGEST_TEXT)
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
        data.decode()
    except UnicodeDecodeError as error:
        raise BadDataError(f"not a report: {error}", file=path) from None
    # What a path says of a ticket, its name and its folder, a report's path does not say of its findings.
    source = Source(_NO_PATH, data.replace(b"\0", b" ").replace(b"\r\n", b"\n"), vocabulary)
    found, left_out, ranks = list[ReportFinding](), list[ReportFinding](), Counter[str]()
    blocks = tuple(block for block in parse(source.data) if block.kind != "FrontMatter")
    whole = _Section(DocumentPart(source, None, 0, len(source.data), blocks))
    for piece in _pieces(whole):
        title, key = words(piece.head.title, LONGEST_TITLE).rstrip(".:"), squeeze(piece.head.title)
        if piece.is_left_out:
            line = source.line(piece.start)
            left_out.append(
                replace(
                    _finding(piece, path, piece.head.heading, f"{MARK}{line}"),
                    severity=None,
                    spots=(Spot(path, path, (line, line)),),
                    left_out="neither a number nor a severity or a place makes this heading a finding",
                )
            )
        elif squeeze(title):
            # By its title, since numbers change and lines move; equal titles are told apart by their order.
            text = json.dumps([path, key, ranks[key]])
            ranks[key] += 1
            fingerprint = MARK + hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
            found.append(_finding(piece, path, title, fingerprint))
    if not found:
        hint = "a finding is a heading, a list item or a row of a table, with a number, a severity or a place"
        raise BadDataError("nothing in this report looks like a finding", file=path, hint=hint)
    return found + left_out


def _finding(piece: _Piece, path: str, title: str, fingerprint: str) -> ReportFinding:
    """Return what a piece of the report at ``path`` says, read as a ticket."""
    text, row = piece.text, piece.row or piece.text
    vocabulary, status = text.source.vocabulary, text.ticket.status or row.ticket.status
    description, fix = text.description_and_fix
    spots = text.spots or row.spots or _Passage.of_text(piece.head.heading, vocabulary).spots
    if spots and not spots[0].lines and (last := _PLACE_LAST.search(piece.head.heading)):
        # The heading may say in which lines of the file it is.
        lines = (replace(spots[0], lines=(*each.values(),)) for each in line_ranges(last["lines"]))
        spots = tuple(lines) or spots
    return ReportFinding(
        fingerprint=fingerprint,
        tool=path,
        rule=piece.head.heading,
        text=title,
        severity=text.severity or piece.severity,
        status=Status(_word(status.raw if status else "", "statuses", vocabulary) or Status.OPEN),
        spots=spots,
        description=description or piece.head.heading,
        fix=fix,
    )


@dataclass(frozen=True)
class _Title:
    """A heading taken apart: its text, its title, its severity."""

    heading: str
    title: str
    names: set[str]  # its ID and title, as they are compared
    severity: Severity | None
    implied: Severity | None  # by the letter or word of its ID
    is_named: bool
    is_numbered: bool


class _Passage:
    """A text that may be a finding, cut at its headings and read as a ticket is."""

    def __init__(self, source: Source, parts: Sequence[DocumentPart]) -> None:
        self.source, self.parts = source, parts

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
        return read_finding(self.parts, read_metadata(self.source, [below, *self.parts]), None)

    @property
    def severity(self) -> Severity | None:
        """The severity that the text states under a label."""
        ticket, vocabulary = self.ticket, self.source.vocabulary
        if ticket.severity:
            return severity_of(ticket.severity.raw, vocabulary)
        # Behind this label there may be a sentence as well.
        risk = ticket.metadata.get("Risk")
        return severity_heading(risk.raw, vocabulary) if risk else None

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The places of the finding: those under labels, else those that the text cites."""
        spots = []
        for each in self.ticket.locations:
            file, symbol = each.file or "", each.symbol or ""
            place = PurePosixPath(file).as_posix() if _INSIDE.fullmatch(file) else None
            for lines in each.lines or [None]:
                spots.append(Spot(file, place, (lines.first, lines.last) if lines else None, symbol))
        return tuple(spot for spot in spots if spot.uri)

    @property
    def description_and_fix(self) -> tuple[str, str]:
        """The text without its fix and the labels at its beginning, and the recommended fix."""
        shown, fix = [], None
        for part in self.parts:
            if part.kind is SectionKind.FIX and fix is None:
                fix = self._with_bold_headings(part.blocks)
            else:
                shown.append(self._with_bold_headings([*dropwhile(self._is_label, part.with_heading)]))
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
                pieces += [self.source.raw(at, block.start), f"**{self.source.words(block).plain}**\n"]
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
    head: _Title
    text: _Passage
    severity: Severity | None  # by its heading, or a heading above
    finds: bool  # whether a heading above calls what is below it findings
    is_left_out: bool = False  # whether it is a heading that only looks like a finding
    row: _Passage | None = None  # what the row of a table says of the same finding


class _Section:
    """A part of the report, or all of it, and what its heading and those above say of all below it."""

    def __init__(self, part: DocumentPart, above: _Section | None = None) -> None:
        vocabulary, heading = part.source.vocabulary, part.title
        self.part, self.above, self.head = part, above, _title_of(heading, vocabulary)
        self.group = severity_heading(heading, vocabulary)
        # Below a severity with a remark there may be nothing but headings of findings: ``P2 - later``.
        is_first = bool(part.blocks) and part.blocks[0].level > 0
        if is_first and not (self.head.is_named or any(each.kind for each in part.parts)):
            self.group = self.group or self.head.severity
        self.severity: Severity | None = self.group or (above.severity if above else None)
        # Whether it, or what it stands in, is called findings, or something that is no finding.
        self.finds: bool = bool(_FINDINGS.search(heading) or (above and above.finds))
        # Below a severity, or with a number below findings, it is one of them.
        is_one = above and (above.group or (above.finds and (self.head.is_named or self.head.is_numbered)))
        is_aside = not is_one and _ASIDE.fullmatch(self.head.title)
        self.aside: bool = part.level > 1 and bool(is_aside or (above and above.aside))
        self.text = _Passage(part.source, part.pieces)

    @property
    def sections(self) -> Iterator[_Section]:
        """The sections right below it, and deeper ones before the first of them."""
        for piece in self.part.pieces:
            for part in [piece] if piece.heading else piece.parts:
                yield _Section(part, self)

    @cached_property
    def is_chapter(self) -> bool:
        """Return True for a summary, and for a table of findings or nothing but tables."""
        told = [each for each in self.part.tables if _title_column(each) and each.column(_SEVERITY_COLUMNS)]
        if told or all(block.kind == "Table" for block in self.part.blocks):
            return not self.head.is_named
        return kind_of_title(self.head.heading) is SectionKind.SUMMARY

    def may_be_a_finding(self) -> bool:
        """Return True if a section that states no severity has the form of a finding."""
        if self.head.is_named:
            return True
        outer = self.above
        if outer and outer.group and self.head.is_numbered:
            return True
        is_other = self.aside or self.part.level == 1 or self.is_chapter
        if outer is None or is_other or _CHAPTER.match(self.head.title) or kind_of_title(self.head.heading):
            return False
        if outer.group or not self.head.is_numbered:
            return outer.group is not None
        # Chapters have numbers, too.
        is_placed = any(spot.path for spot in self.text.spots)
        return is_placed or self.severity is not None or (outer.part.level > 1 and outer.finds)


def _pieces(whole: _Section) -> list[_Piece]:
    """Return what the report finds: its sections, then items and rows that no such section has."""
    found: list[_Piece] = []
    rows: list[_Piece] = []
    pieces = _within(whole)
    # Beside findings that are called so there are chapters, whatever places these name.
    is_found = any(piece.finds and (piece.head.is_named or piece.severity) for piece in pieces)
    for piece in pieces:
        piece.is_left_out |= is_found and not (piece.finds or piece.head.is_named or piece.severity)
        (rows if piece.block.kind == "Table" else found).append(piece)
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
        own = section.text.severity if part.level > 1 and not section.is_chapter else None
        severity = head.severity or own or section.severity or head.implied
        whole = _Piece(block, block.start, head, section.text, severity, section.finds)
        if may_be and (head.severity or own):
            return [whole]
    found = [piece for each in section.sections for piece in _within(each)]
    # What may be a finding is none where sections within it are.
    is_innermost = all(each.is_left_out or not each.block.level for each in found)
    if whole and may_be and is_innermost and section.may_be_a_finding():
        return [whole]
    for block in takewhile(lambda block: not block.level, part.blocks):
        if block.kind == "Table":
            found += _rows(block, section)
        elif block.kind in ("List", "Paragraph"):
            items = (_item(item, section) for item in block.children or [block])
            found += filter(None, items)
    # Of what is nothing else the innermost heading is said.
    if whole and not (found or part.parts or part.tables or part.level == 1 or _CHAPTER.match(part.title)):
        whole.is_left_out = True
        return [whole]
    return found


def _item(block: Block, here: _Section) -> _Piece | None:
    """Return the finding that an item of a list is, or a paragraph that begins with a severity."""
    source, vocabulary = here.part.source, here.part.source.vocabulary
    first, _, rest = source.raw(source.words(block).start, block.end).partition("\n")
    text = f"{first}\n{textwrap.dedent(rest)}".strip()
    opening = _BEFORE_ITEM.sub("", text, count=1)
    signed = _exactly(text.removesuffix(opening), vocabulary)
    if (graded := _GRADED.match(opening)) and (stated := _exactly(graded[0], vocabulary)):
        signed, opening = stated, opening[graded.end() :]
    bold = _BOLD.match(opening)
    lead = bold["lead"] if bold else ""
    head = _title_of(lead.strip(" :"), vocabulary)
    is_label = lead.endswith(":") and LABELS.fullmatch(squeeze(lead))
    is_graded = lead and (head.severity or signed)
    if here.aside or is_label or not (block.kind == "Item" or is_graded):
        return None
    if not head.title or _is_place(lead):
        # The bold text is a severity or a place, or there is none: the title is behind it.
        behind = opening[bold.end() :].lstrip(_SEPARATORS) if bold else opening
        if (first_place := _PLACE_FIRST.match(behind)) and _is_place(first_place["place"]):
            behind = behind[first_place.end() :]
        sentences = map(plain, _SENTENCE.split(behind))
        title = _title_of(next((each for each in sentences if not _is_place(each)), ""), vocabulary)
        head = replace(title, severity=head.severity or title.severity)
    passage = _Passage.of_text(text, vocabulary)
    # ``Severity: high`` or ``(high)``
    inline = (_exactly(each["word"] or each["tag"], vocabulary) for each in _INLINE.finditer(plain(text)))
    severity = head.severity or next(filter(None, inline), None) or passage.severity
    severity = severity or signed or here.severity or head.implied
    if not (lead or passage.spots) or not (severity or here.finds):
        return None
    return _Piece(block, block.start, head, passage, severity, here.finds)


def _rows(block: Block, here: _Section) -> Iterator[_Piece]:
    """Yield the rows of a table of findings: with a title, and a severity or a place."""
    vocabulary, table = here.part.source.vocabulary, here.part.source.table(block)
    named = _title_column(table)
    severe, placed = table.column(_SEVERITY_COLUMNS, named), table.column(_PLACE_COLUMNS, named)
    if named is None or here.aside or not (severe or here.severity or (placed and here.finds)):
        return
    lined = table.column(_LINE_COLUMNS, named, placed)
    labels = {severe: "Severity", placed: "Location", lined: "Lines"}
    for row in table.records:
        head = _title_of(row[named].plain, vocabulary)
        severity = severity_of(row[severe].plain, vocabulary) if severe else None
        severity = severity or head.severity or here.severity
        if not head.title or not (severity or placed):
            continue
        lines, names = [], set(head.names)
        for title, cell in row.items():
            if title == named or not cell.raw:
                continue
            lines.append(f"**{labels.get(title, title.capitalize())}:** {cell.raw}")
            # A severity such as P1 has the form of an ID.
            if title != severe and _ID.fullmatch(cell.plain):
                names.add(squeeze(cell.plain))
        text = _Passage.of_text("\n".join(lines), vocabulary)
        head = replace(head, names=names)
        yield _Piece(block, row[named].start, head, text, severity, here.finds)


def _title_column(table: MarkdownTable) -> str | None:
    """Return the column with the titles of findings."""
    for name in _TITLE_COLUMNS.split():
        for title in table.titles:
            if name in title.split() and "id" not in title.split():
                return title
    # Else the first one of prose.
    for title, cell in table.records[-1].items() if len(table.body) > 1 else ():
        if " " in cell.plain and not _NO_TITLE_COLUMNS.match(title):
            return title
    return None


def _is_place(text: str) -> bool:
    return bool(place_of(Source(_NO_PATH, b"", Vocabulary()).text(0, 0), text.strip("`* ")))


def _title_of(heading: str, vocabulary: Vocabulary) -> _Title:
    """Take a heading apart: numbers, IDs and severities around its title."""
    heading = _LINK.sub(r"\1", heading).replace("\\.", ".")
    rest, names, severity, implied, signed = heading, set[str](), None, None, None
    seen, is_named = set[re.Pattern[str]](), False
    for pattern in _PREFIXES:
        if signs := _SIGNS.match(rest):
            signed = signed or _exactly(signs[0], vocabulary)
            rest = rest[len(signs[0]) :]
        match = pattern.match(rest)
        if match is None or pattern in seen:
            continue
        if pattern is _GRADED:
            # "Note: ..." is what people write in front of anything.
            is_weak = match["word"] and _WEAK.fullmatch(match["word"])
            severity = None if is_weak else _exactly(match["tag"] or match["word"], vocabulary)
            if severity is None:
                continue
        elif pattern is _NAMED and (graded := word_for(match["plain_id"] or "", vocabulary.severities)):
            severity = Severity(graded)
        elif pattern is _NAMED:
            is_named = True
            names |= {squeeze(each) for each in match.groups() if each and not each.isdigit()}
            series = re.split(r"[-\d]", match["id"] or match["plain_id"] or "")[0]
            implied = _exactly(_BY_LETTER.get(series, series), vocabulary)
        seen.add(pattern)
        rest = rest[match.end() :]
    last = _LAST.search(rest)
    ends = [(last["tag"] or last["word"] or last["sign"], last.start())] if last else []
    for text, end in [*ends, (rest, 0)]:
        stated = None if severity else _exactly(text, vocabulary)
        if stated:
            severity, rest = stated, rest[:end]
    severity = severity or signed
    rest = rest.rstrip(_SIGNS_LAST)
    if (place := _PLACE_LAST.search(rest)) and _is_place(place["place"] or _NO_PATH):
        rest = rest[: place.start()]
    title = rest.strip(" :|\u2013\u2014-").rstrip(".")
    if title:
        names.add(squeeze(title))
    return _Title(heading, title, names, severity, implied, is_named, _NUMBERED in seen)


def _exactly(text: str, vocabulary: Vocabulary) -> Severity | None:
    """Return the severity that a text is, without such words as "severity" or "risk"."""
    text = _NOT_CRITICAL.sub("low", text)
    left = [each for each in _WORDS.findall(text) if not _FILLER.fullmatch(each)] or _SIGN.findall(text)
    found = {
        word_for(each, vocabulary.severities) or word_for(each, SUGGESTED["severities"]) for each in left
    }
    word = found.pop() if len(found) == 1 else None
    return Severity(word) if word else None


def _word(text: str, kind: str, vocabulary: Vocabulary) -> str | None:
    """Return the word of the register that a value states, or else that it usually means."""
    stated, of_register = plain(text), getattr(vocabulary, kind)
    return word_in(stated, of_register) or word_in(stated, SUGGESTED[kind]) if stated else None


def severity_of(text: str, vocabulary: Vocabulary) -> Severity | None:
    """Return the severity that a value states, in words of the register or in usual ones."""
    word = _word(text, "severities", vocabulary)
    return Severity(word) if word else None


def severity_heading(heading: str, vocabulary: Vocabulary) -> Severity | None:
    """Return the severity of all below a heading such as ``High severity`` or ``Critical (2)``."""
    # A remark in brackets says how many there are, or what to do: ``Critical (fix before launch)``.
    return None if _WEAK.fullmatch(heading.strip()) else _exactly(_REMARK.sub("", heading), vocabulary)
