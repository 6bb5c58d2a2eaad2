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
from finding_tickets.documents.locations import place_of
from finding_tickets.documents.metadata import LABELS, labelled_values, word_in
from finding_tickets.documents.reading import read_document
from finding_tickets.documents.sections import (
    DocumentPart,
    SectionKind,
    kind_of_title,
    read_metadata,
    read_sections,
)
from finding_tickets.documents.source import Block, Source, parse, plain
from finding_tickets.errors import BadDataError
from finding_tickets.importers.drafts import (
    LONGEST_LINE,
    LONGEST_TEXT,
    LONGEST_TITLE,
    paragraphs,
    places,
    words,
)
from finding_tickets.importers.sarif import DIGITS, Finding, Spot
from finding_tickets.model.ticket import Location, Ticket
from finding_tickets.model.vocabulary import SUGGESTED, Severity, Status, Vocabulary, squeeze, word_for
from finding_tickets.register.new import Draft

MARK = "report:"

# A heading that names a finding: ``[H-01] ...``, ``PERF-3: ...``, ``Finding 4: ...``, ``#7 - ...``.
_NAMED = re.compile(
    r"(?:\[(?P<id>[A-Z]{1,12}(?:-?[A-Z0-9]+)*-?\d+)\]|(?P<plain_id>[A-Z]{1,12}(?:-[A-Z0-9]+)*-?\d+)(?=\s*[:.)|\u2013\u2014]|\s-\s"
    # With nothing but a space behind it only such as F-01 is an ID, and "UTF-8" or "A100 (80GB)" are none.
    r"|\s*[(\[](?i:critical|high|medium|moderate|low|info|major|minor)|(?<=\b[A-Z]-\d)\s|(?<=-0\d)\s|(?<=\b[A-Z]-\d\d)\s)"
    r"|(?i:finding|issue|bug|vulnerability|problem|defect)s?\s*(?:no\.?\s*)?#?(?P<word_id>[A-Z]{0,4}-?\d+(?:\.\d+)*)"
    r"|#(?P<number>\d+))\s*[:.)|\u2013\u2014-]*\s*(?=\S)"
)
_NUMBERED = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3})*)[.):]?\s+(?=\S)")
_SIGNS = re.compile(r"(?:[\u2190-\U0001faff\ufe0f\s]+)?")
_TAG = re.compile(r"[\[(](?P<word>[\w /-]{2,20})[\])]\s*:?\s*")
_BEFORE = re.compile(r"(?P<word>[\w-]{2,14})(?:\s+(?i:severity|priority|risk))?\s*[:|\u2013\u2014]\s+(?=\S)")
_LAST = re.compile(r"\s*[\[(](?P<word>[\w ]{2,20})[\])]\s*$")
_FINDINGS = re.compile(
    r"\b(?:findings?|issues?|bugs?|problems?|vulnerabilit(?:y|ies)|defects?)\b", re.IGNORECASE
)
_WORDS = re.compile(r"[^\W_]+")
_FILLER = re.compile(
    r"(?:severity|priority|risk|issue|finding|problem|bug|level|item|concern|defect|vulnerabilit(?:y|ie)"
    r"|and|or|to|the|must|should|could|fixe?|be|fixed|before|merge|nice|have)s*",
    re.IGNORECASE,
)
# These head other sections as well.
_WEAK = re.compile(r"(?:note|info|information|normal|small|important|average|suggestion)s?", re.IGNORECASE)
_BOLD = re.compile(r"\*\*(?P<lead>[^*\n]+)\*\*")
_SENTENCE = re.compile(r"(?<=[\w`)\]\"'])[.;:]\s|\s[\u2013\u2014-]\s|\n\s*\n")
_TITLE_COLUMNS = (
    "title", "finding", "issue", "bug", "problem", "vulnerability", "name", "summary", "description",
)  # fmt: skip
_SEVERITY_COLUMNS = re.compile(r"(?:severity|priority|risk|impact|rating|criticality)\b.*", re.IGNORECASE)
_PLACE_COLUMNS = re.compile(
    r"(?:affected |source |code )?(?:files?|locations?|paths?|where|places?|code)(?:\(s\))?.*"
)
_ID = re.compile(r"\[?[A-Z]+-?\d+\]?")
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_UNDER_ALL = 7
_LONGEST_MARK = len("10. ")
_NO_PATH = "x.md"
_PAGE = "# Finding Ticket: x\n\n## Description\n\n{}\n\n## Recommended Fix\n\n{}\n"
# What chapters of a report are called that find nothing; below the last of them nothing is found either.
_CHAPTER = re.compile(
    r"(?:introduction|scope|background|method|conclusion|overview|appendix|reference|tool|disclaimer|about"
    r"|executive|summary|contents|limitations|goals?\b).*",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\b(?:good|well|positives?|strengths?|praise|recommendations?|next steps|action items|conclusion|levels?"
    r"|definitions?|classifications?|criteria|legend|categories)\b",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"\b(?:severity|priority|risk)\W{1,6}(?P<word>[A-Za-z]\w*)|\((?P<tag>[A-Za-z]\w*)\)", re.IGNORECASE
)
_BY_LETTER = {"C": Severity.P0, "H": Severity.P1, "M": Severity.P2, "L": Severity.P3}


@dataclass(frozen=True, kw_only=True)
class ReportFinding(Finding):
    """A finding in a report; severities are stated in the words of the register or in usual ones."""

    status: Status | None
    description: str
    fix: str
    summary: str


def draft_of_report(
    found: ReportFinding, batch: int | None, agent: str | None, vocabulary: Vocabulary
) -> Draft:
    """The content of a ticket about a finding of a report, in the report's own Markdown where that can be."""
    description, fix = found.description, found.fix
    page = _PAGE.format(description or "x", fix or "x")
    document, problems = read_document(page.encode(), _NO_PATH, vocabulary)
    strange = [each for each in problems if each.rule != "id-missing"]
    if strange or document is None or [each.level for each in document.sections] != [1, 2, 2]:
        description, fix = paragraphs(description, LONGEST_TEXT), paragraphs(fix, LONGEST_TEXT)
    return Draft(
        title=found.text,
        severity=found.severity,
        status=found.status or Status.OPEN,
        batch=batch,
        agent=agent,
        summary=words(found.summary, LONGEST_LINE) or found.text,
        description=description,
        recommended_fix=fix,
        locations=tuple(places(found.spots, vocabulary)),
    )


def findings_in(data: bytes, path: str, vocabulary: Vocabulary) -> list[ReportFinding]:
    """Every finding of the report at ``path``, in its order.

    Raises:
        BadDataError: It is not text, or nothing in it looks like a finding.
    """
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise BadDataError(f"not a report: {error}", file=path) from None
    # What a path says of a ticket, its name and its folder, a report's path does not say of its findings.
    source = Source(_NO_PATH, data.replace(b"\0", b" ").replace(b"\r\n", b"\n"), vocabulary)
    found, ranks = [], Counter[str]()
    for piece in _Report(source).pieces():
        title, key = words(piece.head.title, LONGEST_TITLE).rstrip(".:"), squeeze(piece.head.title)
        if squeeze(title):
            # By its title, since numbers change and lines move; equal titles are told apart by their order.
            text = json.dumps([path, key, ranks[key]])
            ranks[key] += 1
            fingerprint = MARK + hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
            found.append(_finding(piece, path, title, fingerprint))
    if not found:
        hint = "a finding is a heading, a list item or a row of a table, with a number, a severity or a place"
        raise BadDataError("nothing in this report looks like a finding", file=path, hint=hint)
    return found


def _finding(piece: _Piece, path: str, title: str, fingerprint: str) -> ReportFinding:
    """What a piece of the report at ``path`` says, read as a ticket."""
    read = [each for each in (piece.text, piece.beside) if each]
    raw = next((each.ticket.status.raw for each in read if each.ticket.status), "")
    status = _word(raw, "statuses", piece.text.source.vocabulary)
    description, fix = piece.text.description_and_fix
    stated = piece.text.ticket.summary
    summary = plain(stated.raw) if stated and not _is_place(plain(stated.raw)) else ""
    return ReportFinding(
        fingerprint=fingerprint,
        tool=path,
        rule=piece.head.heading,
        text=title,
        severity=piece.text.severity or piece.severity,
        status=Status(status) if status else None,
        spots=next((each.spots for each in read if each.spots), ()),
        description=description or piece.head.heading,
        fix=fix,
        summary=summary.removeprefix(piece.head.title).lstrip(" :.\u2013\u2014-"),
    )


@dataclass(frozen=True)
class _Title:
    """What a heading says: its text, what is left of it as a title, the severity in it."""

    heading: str
    title: str
    names: frozenset[str]  # its ID and title, as they are compared
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
        """A text that does not stand in the report as it is."""
        source = Source(_NO_PATH, text.encode(), vocabulary)
        return cls(source, read_sections(source))

    @cached_property
    def ticket(self) -> Ticket:
        """What a ticket of this text would say."""
        return read_finding(self.parts, read_metadata(self.source, self.parts), None)

    @property
    def severity(self) -> Severity | None:
        """The severity that the text states under a label."""
        stated = self.ticket.severity
        return severity_of(stated.raw, self.source.vocabulary) if stated else None

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Where the finding is: by its labels, else by the files with lines that it mentions, else by any."""
        stated = [each for each in self.ticket.locations if each.file]
        if not stated and self.parts:
            text = self.source.text(self.parts[0].start, self.parts[-1].end)
            mentioned = [each for span in text.code_spans() for each in place_of(span)]
            mentioned = mentioned or [
                each for link in _LINK.findall(text.raw) for each in place_of(text, link)
            ]
            stated = [Location(**each) for each in mentioned]
            stated = [each for each in stated if each.lines] or stated
        found = []
        for each in stated:
            file, path = each.file or "", PurePosixPath(each.file or "")
            inside = "://" not in file and not path.is_absolute() and ".." not in path.parts and path.suffix
            place = Spot(file, path.as_posix() if inside else None, None, None, each.symbol)
            found += [replace(place, lines=(at.first, at.last)) for at in each.lines] or [place]
        return tuple(found)

    @property
    def description_and_fix(self) -> tuple[str, str]:
        """The text without its fix and the labels at its beginning, and the recommended fix."""
        proposal = next((part for part in self.parts if part.kind is SectionKind.FIX), None)
        others = [part.with_heading for part in self.parts if part is not proposal]
        shown = (self._with_bold_headings([*dropwhile(self._is_label, blocks)]) for blocks in others)
        labelled = self.ticket.recommended_fix
        fix = self._with_bold_headings(proposal.blocks) if proposal else labelled.raw if labelled else ""
        return "\n\n".join(filter(None, shown)), fix

    def _with_bold_headings(self, blocks: Sequence[Block]) -> str:
        """Blocks with bold lines in the place of headings, so that they fit in one section."""
        blocks = blocks[:-1] if blocks and blocks[-1].kind == "Rule" else blocks
        pieces, at = [], blocks[0].start if blocks else 0
        for block in blocks:
            if block.level:
                pieces += [self.source.raw(at, block.start), f"**{self.source.words(block).plain}**\n"]
                at = block.end
        return "".join([*pieces, self.source.raw(at, blocks[-1].end if blocks else 0)]).strip()

    def _is_label(self, block: Block) -> bool:
        """Whether a block is nothing but labelled values that a ticket has in its metadata, or a rule."""
        entries = list(labelled_values(self.source, [block], LABELS))
        known = all(LABELS.fullmatch(each.key) for each in entries)
        # Behind the mark of an item, if it is one; the labels of a table may stand below its header.
        behind = entries[0].start - self.source.whole(block).start if entries else None
        begins = behind is not None and (behind <= _LONGEST_MARK or block.kind == "Table")
        return block.kind == "Rule" or (begins and known)


@dataclass(frozen=True)
class _Piece:
    """A finding: a section, an item of a list or a row of a table."""

    block: Block  # its heading, the item or paragraph, or the table
    start: int
    head: _Title
    text: _Passage
    severity: Severity | None  # by its heading, or a heading above
    beside: _Passage | None = None  # what the row of a table says of the same finding


class _Section:
    """A part of the report, or all of it, and what its heading and those above say of all below it."""

    def __init__(self, part: DocumentPart, above: _Section | None = None) -> None:
        vocabulary, heading = part.source.vocabulary, part.title
        self.part, self.above, self.head = part, above, _title_of(heading, vocabulary)
        self.group = severity_heading(heading, vocabulary)
        self.severity: Severity | None = self.group or (above.severity if above else None)
        # Whether it, or what it stands in, is called findings, or something that is no finding.
        self.finds: bool = bool(_FINDINGS.search(heading) or (above and above.finds))
        self.aside: bool = part.level > 1 and bool(_ASIDE.search(heading) or (above and above.aside))
        self.text = _Passage(part.source, part.pieces)

    @cached_property
    def own(self) -> list[Block]:
        """The blocks above the first section within it."""
        return list(takewhile(lambda block: not block.level, self.part.blocks))

    @cached_property
    def sections(self) -> list[_Section]:
        """The sections right below it, also those of a deeper level that stand before the first of these."""
        pieces = self.part.pieces
        parts = [each for piece in pieces for each in ([piece] if piece.heading else piece.parts)]
        return [_Section(part, self) for part in parts]

    @property
    def states(self) -> bool:
        """Whether it names a finding, or states a severity, in its heading or right below."""
        return bool(self.head.is_named or (self.head.title and self.head.severity) or self.text.severity)

    def nested(self) -> Iterator[_Section]:
        """Every section within it."""
        for each in self.sections:
            yield each
            yield from each.nested()


class _Report:
    """The blocks of a report, and which of them are findings."""

    def __init__(self, source: Source) -> None:
        self.source, self.vocabulary = source, source.vocabulary
        blocks = [block for block in parse(source.data) if block.kind != "FrontMatter"]
        for block in blocks:
            # Bold text that begins as a finding does is a heading below all others.
            bold = _BOLD.fullmatch(source.whole(block).raw) if block.kind == "Paragraph" else None
            if bold and (_NAMED.match(bold["lead"]) or _NUMBERED.match(bold["lead"])):
                block.level, block.first, block.last = _UNDER_ALL, block.start, block.end
        self._whole = _Section(DocumentPart(source, None, 0, len(source.data), tuple(blocks)))

    def pieces(self) -> list[_Piece]:
        """What the report finds: its sections, then items and rows that no such section has."""
        all_of_it = self._within(self._whole)
        found = [each for each in all_of_it if each.block.kind != "Table"]
        # A table may sum up what is told in sections: there it adds what they leave out. Each row of one
        # table is a finding of its own.
        for row in (each for each in all_of_it if each.block.kind == "Table"):
            others = ((at, each) for at, each in enumerate(found) if each.block is not row.block)
            same = next((at for at, each in others if each.head.names & row.head.names), None)
            if same is None:
                found.append(row)
            else:
                severity = found[same].severity or row.severity
                found[same] = replace(found[same], severity=severity, beside=row.text)
        return sorted(found, key=lambda each: each.start)

    @cached_property
    def _telling(self) -> set[int]:
        """The levels of headings that name a finding, or state a severity, themselves or right below."""
        return {each.part.level for each in self._whole.nested() if each.states}

    def _within(self, section: _Section) -> list[_Piece]:
        """The finding that a section is, or else those in it."""
        head, block = section.head, section.part.heading
        whole = []
        if block and section.group is None:
            severity = head.severity or section.severity or head.implied
            whole = [_Piece(block, block.start, head, section.text, severity)]
            if head.severity or (section.part.level > 1 and section.text.severity):
                return whole
        within = [piece for each in section.sections for piece in self._within(each)]
        # What may be a finding is none where sections within it are.
        if whole and self._may_be_one(section) and not any(each.block.level for each in within):
            return whole
        own: list[_Piece] = []
        for each in section.own:
            if each.kind in ("List", "Paragraph"):
                own += [piece for item in each.children or [each] for piece in self._item(item, section)]
            elif each.kind == "Table":
                own += self._rows(each, section)
        return own + within

    def _may_be_one(self, section: _Section) -> bool:
        """Whether a section that states no severity has the form of a finding."""
        head, outer = section.head, section.above
        if head.is_named:
            return True
        chapter = _CHAPTER.match(head.title) or kind_of_title(head.heading)
        if section.aside or section.part.level == 1 or chapter or outer is None:
            return False
        if outer.group or not head.is_numbered:
            return bool(outer.group)
        # A number is that of a chapter, too: where other headings state more, those beside them count.
        placed = any(spot.path for spot in section.text.spots)
        among = section.part.level in self._telling if self._telling else placed
        return bool((placed and among) or section.severity or (outer.part.level > 1 and outer.finds))

    def _item(self, block: Block, here: _Section) -> Iterator[_Piece]:
        """The finding that an item of a list is, or a paragraph that begins with a severity."""
        vocabulary, start = self.vocabulary, self.source.words(block).start
        first, _, rest = self.source.raw(start, block.end).partition("\n")
        text = f"{first}\n{textwrap.dedent(rest)}".strip()
        opening = _SIGNS.sub("", text, count=1)
        bold = _BOLD.match(opening)
        lead = bold["lead"] if bold else ""
        behind = opening[bold.end() :].lstrip(" :.\u2013\u2014-") if bold else opening
        head = _title_of(lead.strip(" :"), vocabulary)
        if here.aside or (lead.endswith(":") and LABELS.fullmatch(squeeze(lead))):
            return
        if block.kind != "Item" and not (lead and head.severity):
            return
        tag = _TAG.match(behind)
        if not head.title or _is_place(lead):
            # The bold text is a severity or a place, or there is none: the title is behind it.
            sentences = map(plain, _SENTENCE.split(behind[tag.end() if tag else 0 :]))
            told = next((each for each in sentences if not _is_place(each)), "")
            title = _title_of(told, vocabulary)
            head = replace(title, severity=head.severity or title.severity)
        stated = [tag["word"]] if tag else []
        stated += [each["word"] or each["tag"] for each in _INLINE.finditer(plain(text))]
        severity = head.severity or next(filter(None, (_exactly(each, vocabulary) for each in stated)), None)
        passage = _Passage.of_text(text, vocabulary)
        severity = severity or passage.severity or here.severity or head.implied
        if (lead or passage.spots) and (severity or here.finds):
            yield _Piece(block, block.start, head, passage, severity)

    def _rows(self, block: Block, here: _Section) -> Iterator[_Piece]:
        """The rows of a table of findings: with a title, and a severity or a place."""
        table = self.source.table(block)
        named = next((t for name in _TITLE_COLUMNS for t in table.titles if name in t.split()), None)
        severe, placed = table.column(_SEVERITY_COLUMNS, named), table.column(_PLACE_COLUMNS, named)
        if named is None or here.aside or not (severe or here.severity or (placed and here.finds)):
            return
        labels = {severe: "Severity", placed: "Location"}
        for row in table.records:
            head = _title_of(row[named].plain, self.vocabulary)
            severity = severity_of(row[severe].plain, self.vocabulary) if severe else None
            severity = severity or head.severity or here.severity
            if not head.title or not (severity or placed):
                continue
            others = [(title, cell) for title, cell in row.items() if cell.raw and title != named]
            lines = (f"**{labels.get(title, title.capitalize())}:** {cell.raw}" for title, cell in others)
            # A severity such as P1 has the form of an ID.
            ids = [cell.plain for title, cell in others if title != severe and _ID.fullmatch(cell.plain)]
            head = replace(head, names=head.names | set(map(squeeze, ids)))
            text = _Passage.of_text("\n".join(lines), self.vocabulary)
            yield _Piece(block, row[named].start, head, text, severity)


def _is_place(text: str) -> bool:
    return bool(place_of(Source(_NO_PATH, b"", Vocabulary()).text(0, 0), text.strip("`* ")))


def _title_of(heading: str, vocabulary: Vocabulary) -> _Title:
    rest, names, severity, implied = heading, set[str](), None, None
    is_named = is_numbered = False
    for _ in range(4):
        rest = _SIGNS.sub("", rest, count=1)
        if not is_named and (match := _NAMED.match(rest)):
            is_named = True
            names |= {squeeze(each) for each in match.groups() if each and not each.isdigit()}
            series = re.split(r"[-\d]", match["id"] or match["plain_id"] or "")[0]
            implied = _BY_LETTER.get(series) or _exactly(series, vocabulary)
        elif not is_numbered and (match := _NUMBERED.match(rest)):
            is_numbered = True
        elif severity is None and (match := _TAG.match(rest) or _BEFORE.match(rest)):
            severity = _exactly(match["word"], vocabulary)
            if severity is None:
                break
        else:
            break
        rest = rest[match.end() :]
    if severity is None and (last := _LAST.search(rest)):
        severity = _exactly(last["word"], vocabulary)
        rest = rest[: last.start()] if severity else rest
    if severity is None and (only := _exactly(rest, vocabulary)):
        severity, rest = only, ""
    title = rest.strip(" :|\u2013\u2014-").rstrip(".")
    names |= {squeeze(title)} if title else set()
    return _Title(heading, title, frozenset(names), severity, implied, is_named, is_numbered)


def _exactly(text: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity that a text is, without such words as "severity" or "risk"."""
    left = " ".join(each for each in _WORDS.findall(text) if not _FILLER.fullmatch(each))
    word = word_for(left, vocabulary.severities) or word_for(left, SUGGESTED["severities"])
    return Severity(word) if word else None


def _word(text: str, kind: str, vocabulary: Vocabulary) -> str | None:
    """The word of the register that a value states, or else that it usually means."""
    stated = plain(text)
    words = getattr(vocabulary, kind), SUGGESTED[kind]
    return next(filter(None, (word_in(stated, each) for each in words)), None) if stated else None


def severity_of(text: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity that a value states, by the words of the register or else by what they usually mean."""
    word = _word(text, "severities", vocabulary)
    return Severity(word) if word else None


def severity_heading(heading: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity of all that stands below a heading such as ``High severity`` or ``Critical (2)``."""
    tokens = [each for each in _WORDS.findall(heading) if not each.isdigit()]
    left = [each for each in tokens if not _FILLER.fullmatch(each)]
    meant = [
        _exactly(each, vocabulary) or _exactly(each.lower().removesuffix("s"), vocabulary) for each in left
    ]
    if not left or None in meant or (left == tokens and any(map(_WEAK.fullmatch, left))):
        return None
    return meant[0]
