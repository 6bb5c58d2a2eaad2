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
from itertools import takewhile
from pathlib import PurePosixPath

from finding_tickets.documents.locations import place_of
from finding_tickets.documents.metadata import LABELS, labelled_values, word_in
from finding_tickets.documents.reading import read_document
from finding_tickets.documents.sections import kind_of_title
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
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
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
_TICKET = "# Finding Ticket: x\n\n{}\n"
_PAGE = _TICKET.format(
    "## Detailed Description\n\n{}\n\n## Recommended Fix\n\n{}\n\n## Verification\n\n- [ ] x"
)
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
    summary: str


def draft_of_report(
    found: ReportFinding, batch: int | None, agent: str | None, vocabulary: Vocabulary
) -> Draft:
    """The content of a ticket about a finding of a report, in the report's own Markdown where that can be."""
    description, fix = found.description, found.fix
    page = _PAGE.format(description or "x", fix or "x")
    document, problems = read_document(page.encode(), "x.md", vocabulary)
    strange = [each for each in problems if each.rule != "id-missing"]
    if strange or document is None or [each.level for each in document.sections] != [1, 2, 2, 2]:
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
    report = _Report(Source(path, data.replace(b"\0", b" "), vocabulary))
    found, ranks = [], Counter[str]()
    for piece in report.pieces():
        title, key = words(piece.head.title, LONGEST_TITLE).rstrip(".:"), squeeze(piece.head.title)
        if squeeze(title):
            # By its title, since numbers change and lines move; equal titles are told apart by their order.
            text = json.dumps([path, key, ranks[key]])
            ranks[key] += 1
            fingerprint = MARK + hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
            found.append(report.finding(piece, title, fingerprint))
    if not found:
        hint = "a finding is a heading, a list item or a row of a table, with a number, a severity or a place"
        raise BadDataError("nothing in this report looks like a finding", file=path, hint=hint)
    return found


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


@dataclass(frozen=True)
class _Piece:
    """A finding: ``block`` is that of its heading, or what it is an item or a row of.

    ``severity`` is stated around it: in its heading, or by a heading above.
    """

    block: Block
    start: int
    head: _Title
    body: str
    severity: Severity | None
    beside: str = ""  # what the row of a table says of the same finding


@dataclass(frozen=True)
class _Section:
    """A heading, or bold text in the place of one, and all blocks below it; None for the whole report."""

    heading: Block | None
    head: _Title
    blocks: Sequence[Block]
    group: Severity | None = None  # of all that is below it, by its heading alone
    severity: Severity | None = None  # of all that is below it
    above: _Section | None = None
    finds: bool = False  # whether it, or what it stands in, is called findings
    aside: bool = False  # whether it, or what it stands in, is called something that is no finding

    @property
    def own(self) -> list[Block]:
        """The blocks above the first section within it."""
        return list(takewhile(lambda block: not block.level, self.blocks))


class _Report:
    """The blocks of a report, and which of them are findings."""

    def __init__(self, source: Source) -> None:
        self.source, self.vocabulary = source, source.vocabulary
        self._tickets: dict[str, Ticket | None] = {}
        blocks = [block for block in parse(source.data) if block.kind != "FrontMatter"]
        for block in blocks:
            # Bold text that begins as a finding does is a heading below all others.
            bold = _BOLD.fullmatch(source.whole(block).raw) if block.kind == "Paragraph" else None
            if bold and (_NAMED.match(bold["lead"]) or _NUMBERED.match(bold["lead"])):
                block.level, block.first, block.last = _UNDER_ALL, block.start, block.end
        self._whole = _Section(None, _title_of("", self.vocabulary), blocks)

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
                found[same] = replace(found[same], severity=severity, beside=row.body)
        return sorted(found, key=lambda each: each.start)

    def finding(self, piece: _Piece, title: str, fingerprint: str) -> ReportFinding:
        """What a piece says, read as a ticket."""
        ticket = self._read(piece.body)
        read = [each for each in (ticket, self._read(piece.beside)) if each]
        raw = next((each.status.raw for each in read if each.status), "")
        status = _word(raw, "statuses", self.vocabulary)
        spots = next((spots for each in read if (spots := tuple(self._spots("", each)))), ())
        summary = plain(ticket.summary.raw) if ticket and ticket.summary else ""
        summary = "" if self._is_place(summary) else summary
        description, fix = _told(piece.body, ticket)
        return ReportFinding(
            fingerprint=fingerprint,
            tool=self.source.path,
            rule=piece.head.heading,
            text=title,
            severity=self._severity(piece.body) or piece.severity,
            status=Status(status) if status else None,
            spots=spots or tuple(self._spots(piece.body, ticket)),
            description=description or piece.head.heading,
            fix=fix,
            summary=summary.removeprefix(piece.head.title).lstrip(" :.\u2013\u2014-"),
        )

    def _parts(self, outer: _Section) -> Iterator[_Section]:
        """The sections right below one, whatever levels their headings skip."""
        blocks, at = outer.blocks, len(outer.own)
        while at < len(blocks):
            block, start = blocks[at], at + 1
            below = takewhile(lambda each: not 0 < each.level <= block.level, blocks[start:])  # noqa: B023
            at = start + sum(1 for _ in below)
            heading = self.source.text(block.first, block.last).plain
            group = severity_heading(heading, self.vocabulary)
            yield _Section(
                block,
                _title_of(heading, self.vocabulary),
                blocks[start:at],
                group,
                group or outer.severity,
                outer,
                bool(_FINDINGS.search(heading) or outer.finds),
                block.level > 1 and bool(_ASIDE.search(heading) or outer.aside),
            )

    @cached_property
    def _telling(self) -> set[int]:
        """The levels of headings that name a finding, or state a severity, themselves or right below."""
        waiting, levels = [self._whole], set[int]()
        while waiting:
            section = waiting.pop()
            waiting += self._parts(section)
            head, block = section.head, section.heading
            states = head.is_named or (head.title and head.severity)
            if block and (states or self._severity(self._text(section.blocks))):
                levels.add(block.level)
        return levels

    def _severity(self, text: str) -> Severity | None:
        """The severity that a text states under a label."""
        ticket = self._read(text)
        return severity_of(ticket.severity.raw if ticket and ticket.severity else "", self.vocabulary)

    def _within(self, section: _Section) -> list[_Piece]:
        """The finding that a section is, or else those in it."""
        head, block, body = section.head, section.heading, self._text(section.blocks)
        whole = []
        if block and section.group is None:
            severity = head.severity or section.severity or head.implied
            whole = [_Piece(block, block.start, head, body, severity)]
            if head.severity or (block.level > 1 and self._severity(body)):
                return whole
        within = [piece for part in self._parts(section) for piece in self._within(part)]
        # What may be a finding is none where sections within it are.
        if whole and self._may_be_one(section, body) and not any(each.block.level for each in within):
            return whole
        own: list[_Piece] = []
        for each in section.own:
            if each.kind in ("List", "Paragraph"):
                own += [piece for item in each.children or [each] for piece in self._item(item, section)]
            elif each.kind == "Table":
                own += self._rows(each, section)
        return own + within

    def _may_be_one(self, section: _Section, body: str) -> bool:
        """Whether a section that states no severity has the form of a finding."""
        head, level, outer = section.head, section.heading.level if section.heading else 0, section.above
        if head.is_named:
            return True
        if section.aside or level == 1 or _CHAPTER.match(head.title) or kind_of_title(head.heading):
            return False
        if outer is None or outer.group or not head.is_numbered:
            return bool(outer and outer.group)
        known = outer.heading is not None and outer.heading.level > 1 and outer.finds
        # A number is that of a chapter, too: where other headings state more, those beside them count.
        placed = any(spot.path for spot in self._spots(self._text(section.own), self._read(body)))
        among = level in self._telling if self._telling else placed
        return bool((placed and among) or section.severity or known)

    def _item(self, block: Block, here: _Section) -> Iterator[_Piece]:
        """The finding that an item of a list is, or a paragraph that begins with a severity."""
        raw, vocabulary = self.source.raw(block.start, block.end), self.vocabulary
        marker = _MARKER.match(raw) if block.kind == "Item" else None
        first, _, rest = raw[marker.end() if marker else 0 :].partition("\n")
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
        if not head.title or self._is_place(lead):
            # The bold text is a severity or a place, or there is none: the title is behind it.
            sentences = map(plain, _SENTENCE.split(behind[tag.end() if tag else 0 :]))
            told = next((each for each in sentences if not self._is_place(each)), "")
            title = _title_of(told, vocabulary)
            head = replace(title, severity=head.severity or title.severity)
        stated = [tag["word"]] if tag else []
        stated += [each["word"] or each["tag"] for each in _INLINE.finditer(plain(text))]
        severity = head.severity or next(filter(None, (_exactly(each, vocabulary) for each in stated)), None)
        severity = severity or self._severity(text) or here.severity or head.implied
        placed = any(True for _ in self._spots(text, self._read(text)))
        if (lead or placed) and (severity or here.finds):
            yield _Piece(block, block.start, head, text, severity)

    def _is_place(self, text: str) -> bool:
        return bool(place_of(self.source.text(0, 0), text.strip("`* ")))

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
            yield _Piece(block, row[named].start, head, "\n".join(lines), severity)

    def _text(self, blocks: Sequence[Block]) -> str:
        """Blocks as they stand in the report, their headings from level 2 on."""
        blocks = blocks[:-1] if blocks and blocks[-1].kind == "Rule" else blocks
        headings = [block for block in blocks if block.kind == "Heading"]
        pieces, at = [], blocks[0].start if blocks else 0
        for block in headings:
            level = block.level - min(each.level for each in headings) + 2
            text = self.source.raw(block.first, block.last)
            pieces += [self.source.raw(at, block.start), f"{'#' * level} {text}\n"]
            at = block.end
        pieces.append(self.source.raw(at, blocks[-1].end if blocks else at))
        return "".join(pieces).replace("\r\n", "\n").strip("\n")

    def _read(self, body: str) -> Ticket | None:
        """A text read as a ticket."""
        if body not in self._tickets:
            document = read_document(_TICKET.format(body).encode(), "x.md", self.vocabulary)[0]
            self._tickets[body] = document if isinstance(document, Ticket) else None
        return self._tickets[body]

    def _spots(self, body: str, ticket: Ticket | None) -> Iterator[Spot]:
        """Where a finding is: by its labels, else by the files with lines that it mentions, else by any."""
        stated = [each for each in (ticket.locations if ticket else ()) if each.file]
        if not stated:
            data = body.encode()
            text = Source("x.md", data, self.vocabulary).text(0, len(data))
            mentioned = [each for span in text.code_spans() for each in place_of(span)]
            mentioned = mentioned or [each for link in _LINK.findall(body) for each in place_of(text, link)]
            stated = [Location(**each) for each in mentioned]
            stated = [each for each in stated if each.lines] or stated
        for each in stated:
            file, path = each.file or "", PurePosixPath(each.file or "")
            inside = "://" not in file and not path.is_absolute() and ".." not in path.parts and path.suffix
            place = Spot(file, path.as_posix() if inside else None, None, None, each.symbol)
            yield from [replace(place, lines=(at.first, at.last)) for at in each.lines] or [place]


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


def _told(body: str, ticket: Ticket | None) -> tuple[str, str]:
    """The description and the recommended fix: the text without its fix and the labels at its beginning."""
    data, fix = _TICKET.format(body).encode(), ""
    if ticket and (proposed := ticket.recommended_fix):
        fix = _without_headings(proposed.raw)
        for section in ticket.sections:
            below = section.body.span
            if section.level > 1 and below.start <= proposed.span.start < below.end:
                data = data[: section.heading.start] + data[below.end :]
    source = Source("x.md", data, Vocabulary())
    _, *blocks = parse(data)
    while blocks and blocks[0].kind in ("Table", "Paragraph", "List", "Rule"):
        entries = list(labelled_values(source, blocks[:1], LABELS))
        known = all(LABELS.fullmatch(each.key) for each in entries)
        if blocks[0].kind != "Rule":
            first = source.whole(blocks[0]).start
            if not (entries and known and entries[0].start <= first + 4):
                break
        blocks = blocks[1:]
    return (_without_headings(data[blocks[0].start :].decode()) if blocks else ""), fix


def _without_headings(text: str) -> str:
    """A text with bold lines in the place of headings, so that it is part of one section."""
    data = text.encode()
    source, pieces, at = Source("x.md", data, Vocabulary()), [], 0
    for block in parse(data):
        if block.level:
            pieces += [source.raw(at, block.start), f"**{source.text(block.first, block.last).plain}**\n"]
            at = block.end
    return "".join([*pieces, source.raw(at, len(data))]).strip()
