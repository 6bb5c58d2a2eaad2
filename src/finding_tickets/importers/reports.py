"""Findings in a report in Markdown: sections, items of lists and rows of tables, each read as a ticket is."""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath

from finding_tickets.documents.locations import place_of
from finding_tickets.documents.metadata import LABELS, labelled_values, word_in
from finding_tickets.documents.reading import read_document
from finding_tickets.documents.sections import DocumentPart
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
from finding_tickets.importers.sarif import DIGITS, Spot
from finding_tickets.model.ticket import Ticket
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
_SIGNS = re.compile(r"[\u2190-\U0001faff\ufe0f\s]+")
_TAG = re.compile(r"[\[(](?P<word>[\w /-]{2,20})[\])]\s*:?\s*")
_BEFORE = re.compile(r"(?P<word>[\w-]{2,14})(?:\s+(?i:severity|priority|risk))?\s*[:|\u2013\u2014]\s+(?=\S)")
_FINDINGS = re.compile(
    r"\b(?:findings?|issues?|bugs?|problems?|vulnerabilit(?:y|ies)|defects?)\b", re.IGNORECASE
)
_WORDS = re.compile(r"[^\W_]+")
_FILLERS = frozenset(
    [
        "severity",
        "priority",
        "risk",
        "issue",
        "finding",
        "problem",
        "bug",
        "level",
        "item",
        "concern",
        "defect",
    ]
) | {
    *("vulnerability", "vulnerabilitie", "and", "or", "to", "the", "must", "should", "could", "fix"),
    *("fixe", "be", "fixed", "before", "merge", "nice", "have"),
}
# These head other sections as well.
_WEAK = frozenset(["note", "info", "information", "normal", "small", "important", "average", "suggestion"])
_BOLD = re.compile(r"\*\*(?P<lead>[^*\n]+)\*\*")
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_SENTENCE = re.compile(r"(?<=[\w`)\]\"'])[.;:]\s|\s[\u2013\u2014-]\s|\n\s*\n")
_TITLE_COLUMNS = (
    "title",
    "finding",
    "issue",
    "bug",
    "problem",
    "vulnerability",
    "name",
    "summary",
    "description",
)
_SEVERITY_COLUMNS = re.compile(r"(?:severity|priority|risk|impact|rating|criticality)\b.*", re.IGNORECASE)
_PLACE_COLUMNS = re.compile(
    r"(?:affected |source |code )?(?:files?|locations?|paths?|where|places?|code)(?:\(s\))?.*"
)
_UNDER_ALL = 7
_PAGE = (
    "# Finding Ticket: x\n\n## Detailed Description\n\n{}\n\n## Recommended Fix\n\n{}\n\n"
    "## Verification\n\n- [ ] x\n"
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


@dataclass(frozen=True)
class ReportFinding:
    """A finding in a report; what is the same as in a ``SarifFinding`` has the same names there.

    ``rule`` is its title as it stands in the report, on ``line``, and ``severity`` what the report states, by
    the words of the register or else by what they usually mean; None where it states none.
    """

    fingerprint: str
    tool: str  # the report's path
    rule: str
    text: str
    severity: Severity | None
    status: Status | None
    spots: tuple[Spot, ...]
    description: str
    fix: str
    summary: str
    line: int
    left_out: str = ""
    tags: tuple[str, ...] = field(default=())


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
        title = words(piece.title, LONGEST_TITLE).rstrip(".:")
        if not squeeze(title):
            continue
        # By its title, since numbers change and lines move; equal titles are told apart by their order.
        text = json.dumps([path, squeeze(piece.title), ranks[squeeze(piece.title)]])
        ranks[squeeze(piece.title)] += 1
        found.append(report.finding(piece, title, MARK + hashlib.sha256(text.encode()).hexdigest()[:DIGITS]))
    if not found:
        hint = "a finding is a heading, a list item or a row of a table, with a number, a severity or a place"
        raise BadDataError("nothing in this report looks like a finding", file=path, hint=hint)
    return found


@dataclass(frozen=True)
class _Piece:
    """A part of the report that may be a finding.

    ``severity`` is stated around it: in its heading, or by a heading above.
    """

    heading: str
    title: str
    names: frozenset[str]  # its ID and title, as they are compared
    body: str
    severity: Severity | None
    line: int
    beside: str = ""  # what the row of a table says of the same finding


@dataclass(frozen=True)
class _Section:
    """A heading, or bold text in the place of one; ``end`` is the first block that is not below it."""

    at: int
    level: int
    end: int
    head: _Title
    severity: Severity | None = None  # of all that is below it
    above: _Section | None = None
    finds: bool = False  # whether it, or what it stands in, is called findings
    aside: bool = False  # whether it, or what it stands in, is called something that is no finding


class _Report:
    """The blocks of a report, and which of them are findings."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.blocks = [block for block in parse(source.data) if block.kind != "FrontMatter"]
        self._tickets: dict[str, Ticket | None] = {}

    def pieces(self) -> list[_Piece]:
        """What the report finds: its sections, then items and rows that no such section has."""
        found: list[tuple[int, _Piece]] = []
        rows: list[tuple[int, _Piece]] = []
        at, here = 0, _Section(-1, 0, len(self.blocks), _title_of("", self.source.vocabulary))
        sections = {section.at: section for section in self._sections}
        while at < len(self.blocks):
            block, here = self.blocks[at], sections.get(at, here)
            piece = self._found(here) if here.at == at else None
            if piece:
                found.append((at, piece))
                at = here.end
                continue
            if block.kind in ("List", "Paragraph") and here.at != at:
                items = (self._item(each, here) for each in block.children or [block])
                found += [(at, each) for each in items if each]
            elif block.kind == "Table":
                rows += [(at, each) for each in self._rows(block, here)]
            at += 1
        # A table may sum up what is told in sections: there it adds what they leave out. Each row of one
        # table is a finding of its own.
        for at, row in rows:
            alike = (i for i, (its, each) in enumerate(found) if its != at and each.names & row.names)
            same = next(alike, None)
            if same is None:
                found.append((at, row))
            else:
                place, piece = found[same]
                severity = piece.severity or row.severity
                found[same] = place, replace(piece, severity=severity, beside=row.body)
        return [piece for _, piece in sorted(found, key=lambda each: each[0])]

    def finding(self, piece: _Piece, title: str, fingerprint: str) -> ReportFinding:
        """What a piece says, read as a ticket."""
        ticket, vocabulary = self._read(piece.body), self.source.vocabulary
        own = ticket.severity.raw if ticket and ticket.severity else ""
        read = [each for each in (ticket, self._read(piece.beside)) if each]
        raw = next((each.status.raw for each in read if each.status), "")
        spots = next((spots for each in read if (spots := tuple(self._spots("", each)))), ())
        summary = plain(ticket.summary.raw) if ticket and ticket.summary else ""
        summary = "" if place_of(self.source.text(0, 0), summary) else summary
        status = word_in(plain(raw), vocabulary.statuses) or word_in(plain(raw), SUGGESTED["statuses"])
        description, fix = _told(piece.body, ticket)
        return ReportFinding(
            fingerprint=fingerprint,
            tool=self.source.path,
            rule=piece.heading,
            text=title,
            severity=severity_of(own, vocabulary) or piece.severity,
            status=Status(status) if raw and status else None,
            spots=spots or tuple(self._spots(piece.body, ticket)),
            description=description or piece.heading,
            fix=fix,
            summary=summary.removeprefix(piece.title).lstrip(" :.\u2013\u2014-"),
            line=piece.line,
        )

    @cached_property
    def _sections(self) -> list[_Section]:
        levels = [
            (at, block.level or _UNDER_ALL) for at, block in enumerate(self.blocks) if self._is_heading(block)
        ]
        sections: list[_Section] = []
        above: list[_Section] = []
        for number, (at, level) in enumerate(levels):
            end = next((other for other, its in levels[number + 1 :] if its <= level), len(self.blocks))
            above = [each for each in above if each.level < level]
            outer, block = above[-1] if above else None, self.blocks[at]
            text = self.source.text(block.first, block.last) if block.level else self.source.whole(block)
            heading, vocabulary = text.plain, self.source.vocabulary
            section = _Section(
                at,
                level,
                end,
                _title_of(heading, vocabulary),
                severity_heading(heading, vocabulary) or (outer.severity if outer else None),
                outer,
                bool(_FINDINGS.search(heading) or (outer and outer.finds)),
                level > 1 and bool(_ASIDE.search(heading) or (outer and outer.aside)),
            )
            sections.append(section)
            above.append(section)
        return sections

    @cached_property
    def _telling(self) -> set[int]:
        """The levels of headings that name a finding, or state a severity, themselves or right below."""
        return {
            each.level
            for each in self._sections
            if each.head.is_named
            or (each.head.title and each.head.severity)
            or self._severity(self._text(self.blocks[each.at + 1 : each.end]))
        }

    def _severity(self, text: str) -> Severity | None:
        """The severity that a text states under a label."""
        ticket = self._read(text)
        return severity_of(ticket.severity.raw if ticket and ticket.severity else "", self.source.vocabulary)

    def _is_heading(self, block: Block) -> bool:
        """Whether it is a heading, or a paragraph of bold text that begins as a finding does."""
        if block.level or block.kind != "Paragraph":
            return bool(block.level)
        bold = _BOLD.fullmatch(self.source.whole(block).raw)
        return bool(bold and (_NAMED.match(bold["lead"]) or _NUMBERED.match(bold["lead"])))

    def _found(self, section: _Section) -> _Piece | None:
        """The finding that a section is; None where it is none, or only holds others."""
        head, start = section.head, self.blocks[section.at].start
        if severity_heading(head.heading, self.source.vocabulary):
            return None
        blocks = self.blocks[section.at + 1 : section.end]
        first = next((index for index, each in enumerate(blocks) if self._is_heading(each)), len(blocks))
        body, own = self._text(blocks), self._text(blocks[:first])
        severity = head.severity or section.severity or head.implied
        piece = _Piece(head.heading, head.title, head.names, body, severity, self.source.line(start))
        if head.severity or (section.level > 1 and self._severity(body)):
            return piece
        part = DocumentPart(self.source, self.blocks[section.at], start, start, ())
        is_chapter = part.kind is not None or section.level == 1 or bool(_CHAPTER.match(head.title))
        if (is_chapter or section.aside) and not head.is_named:
            return None
        placed = any(spot.path for spot in self._spots(own, self._read(body)))
        # A number is that of a chapter, too: where other headings state more, those beside them count.
        among = section.level in self._telling if self._telling else placed
        outer = section.above
        above = outer is not None and bool(severity_heading(outer.head.heading, self.source.vocabulary))
        known = outer is not None and outer.level > 1 and outer.finds
        if not (
            head.is_named or above or (head.is_numbered and ((placed and among) or section.severity or known))
        ):
            return None
        within = [each for each in self._sections if section.at < each.at < section.end]
        return None if any(self._found(each) for each in within) else piece

    def _item(self, block: Block, here: _Section) -> _Piece | None:
        """The finding that an item of a list is, or a paragraph that begins with a severity."""
        raw, vocabulary = self.source.raw(block.start, block.end), self.source.vocabulary
        marker = _MARKER.match(raw) if block.kind == "Item" else None
        first, _, rest = raw[marker.end() if marker else 0 :].partition("\n")
        text = f"{first}\n{textwrap.dedent(rest)}".strip()
        opening = _SIGNS.sub("", text, count=1) if _SIGNS.match(text) else text
        bold = _BOLD.match(opening)
        lead = bold["lead"] if bold else ""
        behind = opening[bold.end() :].lstrip(" :.\u2013\u2014-") if bold else opening
        head = _title_of(lead.strip(" :"), vocabulary)
        if here.aside or (lead.endswith(":") and LABELS.fullmatch(squeeze(lead))):
            return None
        if block.kind != "Item" and not (lead and head.severity):
            return None
        tag = _TAG.match(behind)
        if not head.title or self._is_place(lead):
            # The bold text is a severity or a place, or there is none: the title is behind it.
            sentences = map(plain, _SENTENCE.split(behind[tag.end() if tag else 0 :]))
            told = next((each for each in sentences if not self._is_place(each)), "")
            title = _title_of(told, vocabulary)
            head = replace(title, severity=head.severity or title.severity)
        inline = next(
            (
                each
                for match in _INLINE.finditer(plain(text))
                if (each := match["word"] or match["tag"]) and _exactly(each, vocabulary)
            ),
            "",
        )
        stated = [tag["word"] if tag else "", inline]
        severity = head.severity or next(
            (each for word in stated if (each := _exactly(word, vocabulary))), None
        )
        severity = severity or self._severity(text) or here.severity or head.implied
        placed = any(True for _ in self._spots(text, self._read(text)))
        if not (lead or placed) or not (severity or here.finds):
            return None
        return _Piece(head.heading, head.title, head.names, text, severity, self.source.line(block.start))

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
            head = _title_of(row[named].plain, self.source.vocabulary)
            severity = severity_of(row[severe].plain, self.source.vocabulary) if severe else None
            severity = severity or head.severity or here.severity
            if not head.title or not (severity or placed):
                continue
            others = [(title, cell) for title, cell in row.items() if cell.raw and title != named]
            body = "\n".join(
                f"**{labels.get(title, title.capitalize())}:** {cell.raw}" for title, cell in others
            )
            # A severity such as P1 has the form of an ID.
            ids = {
                squeeze(cell.plain)
                for title, cell in others
                if title != severe and re.fullmatch(r"\[?[A-Z]+-?\d+\]?", cell.plain)
            }
            yield _Piece(
                head.heading, head.title, head.names | ids, body, severity, self.source.line(row[named].start)
            )

    def _text(self, blocks: Sequence[Block]) -> str:
        """Blocks as they stand in the report, their headings from level 2 on."""
        blocks = blocks[:-1] if blocks and blocks[-1].kind == "Rule" else blocks
        if not blocks:
            return ""
        highest, pieces, at = (
            min((each.level for each in blocks if each.level), default=0),
            [],
            blocks[0].start,
        )
        for block in blocks:
            if block.level:
                line = (
                    "#" * (block.level - highest + 2) + " " + self.source.raw(block.first, block.last) + "\n"
                )
                pieces += [self.source.raw(at, block.start), line]
                at = block.end
        return "".join([*pieces, self.source.raw(at, blocks[-1].end)]).replace("\r\n", "\n").strip("\n")

    def _read(self, body: str) -> Ticket | None:
        """A text read as a ticket."""
        if body not in self._tickets:
            page = f"# Finding Ticket: x\n\n{body}\n"
            document = read_document(page.encode(), "x.md", self.source.vocabulary)[0]
            self._tickets[body] = document if isinstance(document, Ticket) else None
        return self._tickets[body]

    def _spots(self, body: str, ticket: Ticket | None) -> Iterator[Spot]:
        """Where a finding is: by its labels, else by the files with lines that it mentions, else by any."""
        stated = [
            (place.file, [(each.first, each.last) for each in place.lines], place.symbol)
            for place in (ticket.locations if ticket else ())
            if place.file
        ]
        if not stated:
            data = body.encode()
            text = Source("x.md", data, self.source.vocabulary).text(0, len(data))
            mentioned = [each for span in text.code_spans() for each in place_of(span)]
            mentioned = mentioned or [
                each for link in re.findall(r"\]\(([^()\s]+)\)", body) for each in place_of(text, link)
            ]
            stated = [
                (each["file"], [(x["first"], x["last"]) for x in each["lines"]], None) for each in mentioned
            ]
            stated = [each for each in stated if each[1]] or stated
        for file, lines, symbol in stated:
            path = PurePosixPath(file)
            inside = "://" not in file and not path.is_absolute() and ".." not in path.parts and path.suffix
            place = Spot(file, path.as_posix() if inside else None, None, None, symbol)
            yield from [replace(place, lines=each) for each in lines] or [place]


@dataclass(frozen=True)
class _Title:
    """What a heading says: its text, what is left of it as a title, the severity in it."""

    heading: str
    title: str
    names: frozenset[str]
    severity: Severity | None
    implied: Severity | None  # by the letter or word of its ID
    is_named: bool
    is_numbered: bool


def _title_of(heading: str, vocabulary: Vocabulary) -> _Title:
    rest, names, severity, implied = heading, set[str](), None, None
    is_named = is_numbered = False
    for _ in range(4):
        rest = _SIGNS.sub("", rest, count=1) if _SIGNS.match(rest) else rest
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
    if severity is None and (last := re.search(r"\s*[\[(](?P<word>[\w ]{2,20})[\])]\s*$", rest)):
        severity = _exactly(last["word"], vocabulary)
        rest = rest[: last.start()] if severity else rest
    if severity is None and (only := _exactly(rest, vocabulary)):
        severity, rest = only, ""
    title = rest.strip(" :|\u2013\u2014-").rstrip(".")
    names |= {squeeze(title)} if title else set()
    return _Title(heading, title, frozenset(names), severity, implied, is_named, is_numbered)


def _exactly(text: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity that a text is, without such words as "severity" or "risk"."""
    left = [each for each in _WORDS.findall(text) if each.lower().rstrip("s") not in _FILLERS]
    word = word_for(" ".join(left), vocabulary.severities) or word_for(
        " ".join(left), SUGGESTED["severities"]
    )
    return Severity(word) if word else None


def severity_of(text: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity that a value states, by the words of the register or else by what they usually mean."""
    stated = plain(text)
    word = word_in(stated, vocabulary.severities) or word_in(stated, SUGGESTED["severities"])
    return Severity(word) if word and stated else None


def severity_heading(heading: str, vocabulary: Vocabulary) -> Severity | None:
    """The severity of all that stands below a heading such as ``High severity`` or ``Critical (2)``."""
    tokens = [each.lower() for each in _WORDS.findall(heading) if not each.isdigit()]
    singular = [each.removesuffix("s") for each in tokens]
    left = [one for one, each in zip(tokens, singular, strict=True) if each not in _FILLERS]
    meant = [_exactly(each, vocabulary) or _exactly(each.removesuffix("s"), vocabulary) for each in left]
    if not left or None in meant or (len(left) == len(tokens) and _WEAK & {*left, *singular}):
        return None
    return meant[0]


def _told(body: str, ticket: Ticket | None) -> tuple[str, str]:
    """The description and the recommended fix: the text without its fix and the labels at its beginning."""
    data = body.encode()
    before = len(b"# Finding Ticket: x\n\n")
    source = Source("x.md", data, Vocabulary())
    fix = ""
    if ticket and (proposed := ticket.recommended_fix):
        start = proposed.span.start
        section = next(
            (each for each in ticket.sections if each.body.span.start <= start < each.body.span.end), None
        )
        fix = _without_headings(proposed.raw)
        if section and section.level > 1:
            data = data[: section.heading.start - before] + data[section.body.span.end - before :]
            source = Source("x.md", data, Vocabulary())
    blocks = parse(data)
    while blocks and blocks[0].kind in ("Table", "Paragraph", "List", "Rule"):
        entries = list(labelled_values(source, blocks[:1], LABELS))
        known = all(LABELS.fullmatch(each.key) for each in entries)
        first = source.whole(blocks[0])
        if not (blocks[0].kind == "Rule" or (entries and known and entries[0].start <= first.start + 4)):
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
