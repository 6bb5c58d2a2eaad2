"""Labelled values in all their forms, the fields of the metadata, and what identifies a document.

A value stands in a table row, after a ``**Label:**``, after a label in a list, or at a top-level key of the
front matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from finding_tickets.documents.source import (
    Block,
    Excerpt,
    MarkdownTable,
    Source,
    Values,
    key_of,
    plain,
)
from finding_tickets.model.vocabulary import (
    Severity,
    Vocabulary,
    Words,
    squeeze,
    word_for,
)

# A label stands at the beginning of a line, perhaps behind a sign, or behind a bar in a line of several; bold
# marks may close before the colon, behind it, or behind the value.
_LABEL = re.compile(
    rb"(?m)(?:(?:^|(?<=\r))[ \t]*(?:>[ \t]*)*|(?:\||\xc2\xb7|\xe2\x80\xa2)[ \t]+)"
    rb"(?:[\xe2\xf0][\x80-\xbf\xef]+[ \t]*)?"
    rb"(?P<mark>\*\*|__)(?P<label>[^*\r\n]{1,100}?)"
    rb"(?:(?::|\xef\xbc\x9a)(?P=mark)|(?P=mark)[ \t]*(?::|\xef\xbc\x9a)"
    rb"|:[ \t]+(?P<value>[^*\r\n \t][^*\r\n]{0,1000}?)(?P=mark)(?=[ \t]*(?:$|\r|\||\()))"
)
_BARE_LABEL = re.compile(
    rb"(?m)(?:^|(?<=\r))[ \t]*(?P<label>[A-Za-z\x80-\xff][\w()/ \x80-\xff-]{0,40}?)[ \t]*"
    rb"(?::(?=\s)|\xef\xbc\x9a)(?P<value>)"
)
_LINE = re.compile(rb"[^\r\n]+")
# Beside most labels there are bold marks; without any, nothing else is looked for.
_MARKS = re.compile(rb"\*\*|__")
_FIELD_AND_VALUE = 2
# What heads the first column of a table whose rows are labelled values.
_COLUMN_TITLES = frozenset(
    [
        "field",
        "key",
        "property",
        "attribute",
        "item",
        "name",
        "metadata",
        "label",
        "aspect",
        "detail",
        "",
    ]
)
_VALUE_TITLES = ["value", "values", "detail", "details", "description", "content", ""]
_KEY = re.compile(
    rb"(?<![^\r\n])(?P<quote>[\"']?)(?P<key>[\w\x80-\xff][^\r\n:]*?)(?P=quote)[ \t]*:(?=[ \t\r\n]|\Z)"
)
# A text of several lines, whose mark is no part of it, and what states that there is no value.
_BLOCK_SCALAR = re.compile(rb"[ \t]*[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?=[\r\n])")
_NO_VALUE = ["null", "~", "[]", "{}", "_No response_", "-", "\u2013", "\u2014"]
_COMMENT = re.compile(rb"(?:^|[ \t])#[^\r\n]*\Z")
_LINE_END = re.compile(rb"[\r\n]")

# The labels under which a value of the metadata is looked for, the best first.
_ROWS = """\
ID: Ticket ID, ID, Review ID, Ticket, Finding ID, Bug ID, Issue ID, Issue Number, Issue Key, \
\u7f16\u53f7
Severity: Severity, Priority, Severity Level, Severity Rating, Issue Severity, Bug Severity, Finding \
Severity, Risk Level, Risk Rating, Criticality, Importance, Urgency, \u4e25\u91cd\u7a0b\u5ea6, \
\u4e25\u91cd\u6027, \u4e25\u91cd\u7ea7\u522b, \u4f18\u5148\u7ea7, Severite, S\u00e9v\u00e9rit\u00e9, \
Gravit\u00e9, Priorit\u00e9, Schweregrad, Severidad, Gravedad, Prioridad, Severidade, Gravidade, \
Prioridade, \u91cd\u8981\u5ea6, \uc2ec\uac01\ub3c4, \uc6b0\uc120\uc21c\uc704, \
\u0421\u0435\u0440\u044c\u0451\u0437\u043d\u043e\u0441\u0442\u044c, \
\u041f\u0440\u0438\u043e\u0440\u0438\u0442\u0435\u0442
Status: Status, State, Current Status, Issue Status, Bug Status, Ticket Status, Finding Status, \
\u72b6\u6001, \u72b6\u614b, Statut, Estado, Zustand, \uc0c1\ud0dc, \u0421\u0442\u0430\u0442\u0443\u0441
Resolution: Resolution, Outcome, Disposition
Batch: Batch
Agent: Agent, Agents, Reporter, Reported By, Found By, Discovered By, Source Agent, Submitted By, \
Filed By, Opened By, Raised By, Created By, Identified By, Auditor
Domain: Domain, Domains, Component, Components, Area, Subsystem, Affected Component, Affected \
Components
Assignee: Assignee, Assigned To, Owner, Assignees, Assigned
Created: Created, Date Created, Date Discovered, Discovered, Opened, Reported, Filed, Date, Created \
At, Created On, Creation Date, Date Reported, Date Found, Date Opened, Date Filed, Discovery Date, \
Reported On, Found On, Opened On, Discovered On
Updated: Updated, Last Updated, Last Modified, Modified, Updated At, Updated On, Last Update
Closed: Closed, Date Closed, Resolved, Date Resolved, Fixed, Date Fixed, Fix Date, Fixed On, Closed \
At, Closed On, Resolved At, Resolved On, Resolution Date
Code Repository: Code Repository
Title: Title
Labels: Labels, Label, Tags
Category: Category, Categories
Reviewer: Reviewer, Reviewed By, Reviewers, Author
Date: Date, Review Date, Date Reviewed, Reviewed, Reviewed On
Commits: Commits, Commit, Commit Range, Commits Reviewed, Commit Hash, Commit SHA, SHA, Git Range
Base: Base, Base Commit, Base SHA
Head: Head, Head Commit, Head SHA
Plan: Plan Reference, Plan, Plan Document, Plan File, Implementation Plan, Reference Plan
Specification: Specification, Spec, Design Document
"""
ROWS = {
    name: tuple(labels.split(", "))
    for name, _, labels in (line.partition(": ") for line in _ROWS.splitlines())
}
_KEYS = {name: [squeeze(label) for label in labels] for name, labels in ROWS.items()}
# Labels, in the form that is compared, under which files stand; and those of lines and symbols.
FILES = re.compile(
    r"(?:\w{0,20}files?|(?:affected|related|source|code|file)?paths?|(?:code|affected|file)?locations?)(?:lines?)?"
    r"|where|affected|targets?|linesofcode|affectedcode|fichiers?|emplacement|datei(?:en)?|fundstelle|archivos?"
    r"|ubicaci\u00f3?n|arquivos?|\w{0,9}(?:\u6587\u4ef6|\u4f4d\u7f6e|\ud30c\uc77c|\uc704\uce58)"
    r"|\u0444\u0430\u0439\u043b\u044b?|\u043c\u0435\u0441\u0442\u043e"
)
LINES = re.compile(
    r"(?:affected|code)?lines?(?:numbers?|ranges?|affected)?|lignes?|zeilen?|li?neas?|linhas?"
    r"|\u884c\u53f7|\u0441\u0442\u0440\u043e\u043a[\u0430\u0438]"
)
SYMBOLS = re.compile(r"(?:functions?|class(?:es)?|methods?|modules?|symbols?)+")
PLACES = re.compile("|".join(each.pattern for each in (FILES, LINES, SYMBOLS)))
SEVERITIES = re.compile("|".join(_KEYS["Severity"]))
LABELS = re.compile(
    "|".join([*(key for keys in _KEYS.values() for key in keys), PLACES.pattern])
)
# These name the document only where an ID stands beside them.
_MAYBE_IDS = [
    "key",
    "reference",
    "ref",
    "number",
    "issue",
    "bug",
    "finding",
    "identifier",
    "code",
]
# A section may hold nothing but one of these.
ALONE = frozenset(
    key
    for name in (
        "ID",
        "Title",
        "Severity",
        "Status",
        "Agent",
        "Domain",
        "Assignee",
        "Created",
    )
    for key in _KEYS[name]
)
_BETWEEN = re.compile(r"\s[/&+]\s|\sand\s|[,;]|<br ?/?>|(?:^|[\r\n])[ \t]*-[ \t]")
_QUOTES = ("'", '"')
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_NUMBER = re.compile(r"(?i)(?:batch\s*#?|b)?([0-9]{1,9})(?:\b(?![.\w]).*)?")

_ARROW = re.compile(r"\u2192|\u21d2|(?<![-=])[-=]+>")
_STRUCK = re.compile(r"~~.*?~~")
_TOKEN = re.compile(r"[\w'\u2019]+")
# No spelling of a vocabulary has more words: what follows is a remark.
_LONGEST_WORD = 4
# A section with more text than this says something about its value.
_LONGEST_VALUE = 60
_REMARK = re.compile(r"[.;]\s|\s[\u2013\u2014-]\s")

_WORD = re.compile(r"[^\W_]+")
_SEVERITY_SIGN = re.compile(r"[\u2300-\u2bff\U0001f000-\U0001faff]")
_FILLER = re.compile(
    r"(?i)(?:severity|priority|risk|issue|finding|probl[e\u00e8]me?|bug|level|item|concern|defect|vulnerabilit(?:y|ie)"
    r"|x|and|or|to|the|must|should|could|fix|be|before|merge|nice|have|improvement|enhancement)s*|\d+",
)
# These head other sections as well.
_WEAK = re.compile(
    r"(?i:note|information|normal|small|important|average|suggestion)s?|[Ii]nfo"
)
_ASIDE = re.compile(r"(?<=\w)\s*\([^()]*\)\s*$")
_NOT_CRITICAL = re.compile(r"(?i)\bnon-?critical\b")
_REVIEW_TITLE = re.compile(
    r"(?i)\b(?:implementation|code|change|plan|task|phase|final|integration) review\b|\breview of\b",
)
_FINDING_TITLE = re.compile(
    r"(?i)(?:(?:finding|bug|fix|issue|defect|ticket)(?: (?:ticket|report|finding))?\s*[:\u2013\u2014]"
    r"|(?:finding|bug|fix|issue) (?:ticket|report)(?:\s+-\s|\s+(?=[A-Z][A-Z0-9]*-)|$)"
    r"|(?:finding|bug|issue|defect|ticket)\s+(?=[A-Z][A-Z0-9]*-[\w-]*\d(?:\s*:|\s+[-\u2013\u2014]\s)))\s*",
)
# A sign in front of a title, or a severity in front of its ID.
_SIGN = re.compile(
    r"^(?:[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]+\s+|\[(?i:p\d|critical|high|medium|low)\]\s+(?=[A-Z]+-\d))"
)
_NUMBERED = re.compile(r"^\d{1,3}[.)]\s+(?=\S)")
# What heads every document that was made of one template, and says nothing of this one.
_BOILERPLATE = re.compile(
    r"(?i)(?:(?:bug|finding|issue|defect|feat|feature|jank|ticket|enhancement|problem)s?[ -]?)*"
    r"(?:template|ticket|report|title|bug|issue|finding|defect)",
)
# ``Bug 007 - It waits``.
NUMBERED_TITLE = re.compile(
    r"(?i)(?:bug|finding|issue|defect|ticket)\s*#?\d+\s*(?::|\s[-\u2013\u2014])\s*(?=\S)"
)
# A severity in a title: ``[P1] It waits``.
GRADE = re.compile(r"[\[(](?P<word>[\w-]{2,12})[\])]")
_COLON_OR_DASH = re.compile(r"[:\uff1a]|\s[-\u2013\u2014]\s")
_SEPARATORS = " .:\uff1a|-\u2013\u2014\u00b7\u2022"
_FIRST_WORD = re.compile(
    r"(?P<word>[A-Za-z][\w-]*\d)(?:\s|[:.\uff1a])|(?P<number>\d{2,5})(?:\s*[:\uff1a]|\s[-\u2013\u2014\u00b7]\s)"
)
_TASK = re.compile(r"(?i)\b(?P<word>task|step|phase|milestone)\s+(?P<number>\d+)\b")
# In a folder with such a name there are findings.
FILED = re.compile(
    r"(?:^|/)[._]?(?:known[-_])?(?:bugs?|defects?|findings?|issues?|tickets?|problems?|vulnerabilit(?:y|ies)"
    r"|(?:tech(?:nical)?[-_])?debts?)/",
    re.IGNORECASE,
)
_COMMON_NAMES = frozenset(["bug", "finding", "issue", "problem", "ticket"])
_YEAR = re.compile(r"20\d\d")
_DAY = re.compile(r"(?<!\d)(?:19|20)\d\d[-_.]\d\d[-_.]\d\d(?!\d)")
# A single word behind the severity is the slug, and says nothing of the domain.
_DOMAIN_AND_SLUG = 2


class LabelledValue(NamedTuple):
    """A label without markup, its value, and the offset at which the label starts."""

    label: str
    value: Excerpt
    start: int

    @property
    def key(self) -> str:
        """The label in the form that is compared: ``files`` for ``File(s)``."""
        return key_of(self.label)

    @property
    def plain(self) -> str:
        """The value without markup; empty where it states that there is none."""
        return "" if self.value.raw in _NO_VALUE else self.value.plain

    @property
    def whole(self) -> Excerpt:
        """The value with its label."""
        return self.value.source.text(self.start, self.value.end)


def labelled_values(
    source: Source, blocks: Iterable[Block], bare: re.Pattern[str] | None = None
) -> Iterator[LabelledValue]:
    """Every labelled value among ``blocks``, in the order of the file.

    Labels whose key matches ``bare`` need not be bold.
    """
    for block in blocks:
        if block.kind == "Table":
            table = source.table(block)
            titles = table.titles
            # Without a header of its own, the first row of a table of labels is its header for Markdown.
            titled = titles[0] in _COLUMN_TITLES and len(titles) > 1
            # ``| Key | BUG-7 |`` is a row.
            titled = titled and not source.vocabulary.an_id.fullmatch(titles[1])
            valued = len(titles) == _FIELD_AND_VALUE or (
                titled and titles[1] in _VALUE_TITLES
            )
            for row in table.body if titled else table.rows:
                if row.text:
                    yield from labels_in(source, row.block)
                elif valued:
                    label, value, *_ = table.cells(row)
                    yield LabelledValue(
                        label.plain.rstrip(" :"), value, row.block.start
                    )
        elif block.kind == "Paragraph":
            yield from labels_in(source, block, bare)
        elif block.kind == "List" and (
            bare or _MARKS.search(source.data, block.start, block.end)
        ):
            for item in block.children:
                yield from labels_in(source, source.words(item), bare)
        elif block.kind == "BlockQuote":
            yield from labelled_values(source, block.children, bare)
        elif block.kind == "FrontMatter":
            matches = list(_KEY.finditer(source.data, block.start, block.end))
            ends = [*(match.start() for match in matches), block.end][1:]
            for match, until in zip(matches, ends, strict=True):
                scalar = _BLOCK_SCALAR.match(source.data, match.end(), until)
                begin = scalar.end() if scalar else match.end()
                piece = source.data[begin:until].rstrip()
                if not _LINE_END.search(
                    piece.strip()
                ) and not piece.lstrip().startswith((b'"', b"'")):
                    piece = _COMMENT.sub(b"", piece)
                text = source.text(begin, begin + len(piece))
                if (
                    len(text.raw) > 1
                    and text.raw[0] == text.raw[-1]
                    and text.raw[0] in "\"'"
                ):
                    text = text.piece(1, -1)
                yield LabelledValue(match["key"].decode(), text, match.start())


def labels_in(
    source: Source, text: Block | Excerpt, bare: re.Pattern[str] | None = None
) -> Iterator[LabelledValue]:
    """The ``**Label:** value`` pieces of a text; a value reaches to the next label."""
    start, end = text.start, text.end
    marked = _MARKS.search(source.data, start, end)
    if not (bare or marked):
        return
    data = source.data[start:end]
    matches = list(_LABEL.finditer(data)) if marked else []
    if bare:
        named = list(_BARE_LABEL.finditer(data))
        known = [
            match for match in named if bare.fullmatch(squeeze(match["label"].decode()))
        ]
        # Beside two known labels, what else looks like one is a label, too, and no part of a value.
        matches += named if len(known) > 1 else known
        matches.sort(key=lambda match: match.start())
    ends = [*(match.start() for match in matches), len(data)][1:]
    for match, until in zip(matches, ends, strict=True):
        # With both marks around label and value, the value ends with them: ``**Status: open**``.
        first, last = match.span("value") if match["value"] else (match.end(), until)
        value = source.text(start + first, start + last)
        yield LabelledValue(
            plain(match["label"].decode()), value, start + match.start()
        )


def _in_columns(table: MarkdownTable) -> list[LabelledValue]:
    """Return the values of a table that has a column for each label, and one row; none for other tables."""
    known = [title for title in table.titles if LABELS.fullmatch(key_of(title))]
    if len(table.body) != 1 or 2 * len(known) < max(4, len(table.titles)):
        return []
    return [
        LabelledValue(title.title(), cell, cell.start)
        for title, cell in table.records[0].items()
    ]


class Metadata:
    """The rows of the metadata, by the label as it is compared: ``Ticket ID`` is ``ticketid``."""

    def __init__(self, source: Source, blocks: Iterable[Block]) -> None:
        """Collect the rows; of rows with the same label the first counts, and the others are reported."""
        self.source = source
        self.entries: dict[str, LabelledValue] = {}
        held, own = list(blocks), source.vocabulary.labels
        spelt = [squeeze(each) for others in own.values() for each in others]
        bare = re.compile("|".join([LABELS.pattern, *spelt])) if spelt else LABELS
        for block, follower in zip_longest(held, held[1:]):
            entries = _in_columns(source.table(block)) if block.kind == "Table" else []
            entries = entries or list(labelled_values(source, [block], bare))
            if (
                entries
                and follower
                and follower.kind == "List"
                and not entries[-1].value.raw
            ):
                # ``**Files:**`` and a list below it.
                entries[-1] = entries[-1]._replace(value=source.whole(follower))
            for entry in entries:
                # What the register calls a severity is one.
                key = key_of(word_for(entry.label, own) or entry.label)
                if key in self.entries:
                    message = f"{entry.label} is given twice; the first one counts"
                    entry.value.report("metadata-twice", message)
                self.entries.setdefault(key, entry)

    def add_section(self, headline: Excerpt, blocks: Sequence[Block]) -> bool:
        """Add a section with nothing but values as rows. False where it has more, or the row is known.

        A value stands below the heading (``## Severity``) or in it (``## Severity: High``); a list below it
        may have several, each with its label.
        """
        label, value = headline.raw.partition(":")[0], headline.after_colon
        key, block = squeeze(label), blocks[0] if len(blocks) == 1 else None
        if any(key in keys and self.get(name) for name, keys in _KEYS.items()):
            return False
        stated = list(labelled_values(self.source, blocks, LABELS)) if block else []
        if block and not value.raw and block.kind == "Paragraph":
            value = self.source.whole(block).first_line
        elif block and not value.raw and block.kind == "List":
            value = self.source.words(block.children[0]).first_line
        # What follows a full stop or a dash is a remark.
        if key != "title":
            value = value.piece(0, len(_REMARK.split(value.raw, maxsplit=1)[0]))
        if stated and all(LABELS.fullmatch(entry.key) for entry in stated):
            for entry in stated:
                self.entries.setdefault(entry.key, entry)
        elif 0 < len(value.raw) <= _LONGEST_VALUE * (1 + 4 * (key == "title")):
            self.entries.setdefault(
                key, LabelledValue(plain(label), value, headline.start)
            )
        else:
            return False
        return True

    def get(self, name: str) -> LabelledValue | None:
        """The row of this name, under the first of its labels that has a value."""
        return next(self.all_of(name), None)

    def all_of(self, name: str) -> Iterator[LabelledValue]:
        """The rows of this name that have a value, the best label first."""
        for key in _KEYS.get(name) or [squeeze(name)]:
            if (entry := self.entries.get(key)) and entry.plain:
                yield entry

    @property
    def stated_id(self) -> LabelledValue | None:
        """A row with an ID under a label that may stand for something else: ``Key``, ``Issue``."""
        pattern = self.source.vocabulary.an_id
        maybe = (self.entries.get(key) for key in _MAYBE_IDS)
        return next(
            (each for each in maybe if each and pattern.fullmatch(each.plain)), None
        )

    def string(self, name: str) -> Values | None:
        """The field of a row: its value without markup."""
        entry = self.get(name)
        if entry is None:
            return None
        is_list = entry.value.raw.startswith(("- ", "["))
        texts = (
            [text.plain for text in listed(entry.value) if text.raw]
            if is_list
            else [entry.plain]
        )
        return entry.value.record(value=", ".join(texts))

    def number(self, name: str) -> Values | None:
        """The field of a row as an integer; None inside where it is not one."""
        entry = self.get(name)
        if entry is None:
            return None
        match = _NUMBER.fullmatch(entry.plain)
        if match is None:
            entry.value.report(
                "metadata-number", f"{name} is not a number: {entry.plain!r}"
            )
        return entry.value.record(value=int(match[1]) if match else None)

    def word(
        self, name: str, words: Words, *, mentioned: bool = False
    ) -> Values | None:
        """The field of a row with a word of a vocabulary, or with None where the row has no such word.

        With ``mentioned`` the word may stand anywhere in the row if it is the only one.
        """
        entries = [
            (each, word_in(each.plain, words, mentioned=mentioned))
            for each in self.all_of(name)
        ]
        if not entries:
            return None
        # Of a severity and a priority, the one in words of the register.
        entry, word = next((each for each in entries if each[1]), entries[0])
        if word is None:
            entry.value.report_unknown(name, words)
        return entry.value.record(value=word)

    def strings(self, name: str) -> list[Values]:
        """The fields of a row that lists several: code spans, or pieces between commas and slashes."""
        entry = self.get(name)
        texts = listed(entry.value) if entry else []
        return [text.record(value=text.plain) for text in texts if text.raw]


def listed(value: Excerpt) -> list[Excerpt]:
    """The pieces of a value that lists several: its code spans, else what stands between separators."""
    # What stands in backticks is one piece, whatever separators it contains.
    spans = value.code_spans()
    if spans:
        return spans
    if value.raw.startswith("[") and value.raw.endswith("]"):
        value = value.piece(1, -1)
    pieces, at = list[Excerpt](), 0
    for separator in _BETWEEN.finditer(value.raw):
        pieces.append(value.piece(at, separator.start()))
        at = separator.end()
    pieces.append(value.piece(at))
    return [
        text.piece(1, -1)
        if text.raw[:1] in _QUOTES and _QUOTED.fullmatch(text.raw)
        else text
        for text in pieces
    ]


def beginnings(phrase: str) -> Iterator[str]:
    """Yield ``phrase`` and its first words, the longest first; after an arrow, only the last state counts.

    Struck text does not count: ``closed (2024-12-28)``, ``P1 -> P3``, ``~~open~~ fixed``.
    """
    # People keep the history of a value beside it; the last state is the one that counts.
    last = _ARROW.split(_STRUCK.sub(" ", phrase))[-1]
    tokens = _TOKEN.findall(last)[:_LONGEST_WORD]
    yield last
    yield from (" ".join(tokens[:length]) for length in range(len(tokens), 0, -1))


def word_in(phrase: str, words: Words, *, mentioned: bool = True) -> str | None:
    """Return the word of a vocabulary that ``phrase`` begins with; after an arrow, the last state counts.

    Else, if ``mentioned`` words count, the only word anywhere in it: ``Medium (P2)``.
    """
    stated = next(
        (word for each in beginnings(phrase) if (word := word_for(each, words))), None
    )
    if stated or not mentioned:
        return stated
    named = {word_for(token, words) for token in _TOKEN.findall(phrase)} - {None}
    return named.pop() if len(named) == 1 else None


def words_of_only(text: str, words: Words) -> list[str]:
    """Return the words of a vocabulary that a text is made of; none where it says anything else."""
    left = [each for each in _WORD.findall(text) if not _FILLER.fullmatch(each)]
    left = left or _SEVERITY_SIGN.findall(text)
    found = [word for each in left if (word := word_for(each, words))]
    return found if len(found) == len(left) else []


def severity_of(text: str, vocabulary: Vocabulary) -> Severity | None:
    """Return the severity that a text is, without such words as "severity" or "risk"; the worse of two."""
    found = words_of_only(_NOT_CRITICAL.sub("low", text), vocabulary.severities)
    return Severity(min(found)) if found else None


def severity_heading(heading: str, vocabulary: Vocabulary) -> Severity | None:
    """Return the severity of all below a heading such as ``High severity`` or ``Critical (2)``."""
    # A remark in brackets says how many there are, or what to do: ``Critical (fix before launch)``.
    return (
        None
        if _WEAK.fullmatch(heading.strip())
        else severity_of(_ASIDE.sub("", heading), vocabulary)
    )


# What a document is, which ID it has and what it is called.


def stem_of(path: str) -> str:
    """The name of a file, or that of its folder where it is called as all others are: ``x/problem.md``."""
    file = PurePosixPath(path)
    return (file.stem.lower() in _COMMON_NAMES and file.parent.name) or file.stem


class FileName(NamedTuple):
    """The parts of a file name such as ``BUG-013-P2-domain-slug.md``, None for each that is missing."""

    id: str | None = None
    severity: str | None = None
    domain: str | None = None


def file_name(path: str, vocabulary: Vocabulary) -> FileName:
    """The parts of the name of the file at ``path``; the ID is the shortest beginning that is one."""
    stem = stem_of(path)
    pieces = [piece for piece in re.split(r"[-_ ]", _DAY.sub("", stem)) if piece]
    severity = word_for(pieces[0], vocabulary.severities) if pieces else None
    if severity:
        return FileName(None, severity)
    for count in range(1, len(pieces) + 1):
        name, behind = "-".join(pieces[:count]), pieces[count:]
        # ``BUG-2026-014`` is numbered within a year.
        is_year = _YEAR.fullmatch(pieces[count - 1]) and "".join(behind[:1]).isdigit()
        if vocabulary.an_id.fullmatch(name) and not is_year:
            severity = word_for(behind[0], vocabulary.severities) if behind else None
            domain = behind[1] if severity and len(behind) > _DOMAIN_AND_SLUG else None
            return FileName(name.upper(), severity, domain)
    return FileName()


def kind_of(
    title: Excerpt | None, metadata: Metadata
) -> Literal["finding", "review"] | None:
    """Return the kind of a document; None where nothing states one."""
    source, words = metadata.source, title.plain if title else ""
    stem, name = stem_of(source.path), file_name(source.path, source.vocabulary)
    leading = _leading_id(source, words)
    if metadata.get("Severity") or _FINDING_TITLE.match(words) or leading == stem:
        return "finding"
    if metadata.get("Plan") or _REVIEW_TITLE.search(
        _COLON_OR_DASH.split(words, maxsplit=1)[0]
    ):
        return "review"
    named = (
        # An export of an issue, or the heading of a template that was filled in.
        ("number" in metadata.entries or _BOILERPLATE.fullmatch(words))
        and metadata.get("Status")
        and metadata.get("Title"),
        source.vocabulary.an_id.fullmatch(stem),
        name.severity,
        (name.id or leading) and metadata.get("Status"),
        leading
        and stem.upper().startswith(leading)
        and (not leading.isdigit() or FILED.search(source.path)),
        metadata.get("ID") or metadata.stated_id,
    )
    return "finding" if any(named) else None


def read_header(metadata: Metadata, title: Excerpt | None) -> Values:
    """The fields that every document has: which one it is, and where its code is."""
    identity = _read_id(metadata, title)
    return {
        "path": metadata.source.path,
        "id": identity,
        "title": _read_title(metadata, title, identity["value"]),
        "metadata": {
            entry.label: entry.value.record() for entry in metadata.entries.values()
        },
        "code_repository": metadata.string("Code Repository"),
    }


def _read_id(metadata: Metadata, title: Excerpt | None) -> Values:
    """The ID from the metadata, else from a title (``BUG-7: ...``, ``Task 5 ...``), else the file's name."""
    source, vocabulary = metadata.source, metadata.source.vocabulary
    stated = metadata.get("ID") or metadata.stated_id
    if stated:
        match = re.match(rf"(?i)(?:{vocabulary.id_pattern})(?=$|\s|\()", stated.plain)
        if match is None:
            hint = f"the pattern is {vocabulary.id_pattern}"
            stated.value.report(
                "id-form", f"{stated.plain!r} is not an ID of this register", hint
            )
        return stated.value.record(value=(match[0] if match else stated.plain).upper())
    words = title.plain if title else ""
    before = _COLON_OR_DASH.split(words, maxsplit=1)[0]
    leading = _leading_id(source, words)
    # "Task 5" names a review; in the title of a finding it may be part of the sentence.
    task = _TASK.search(words if _REVIEW_TITLE.search(before) else before)
    named = leading or (f"{task['word']}-{task['number']}".upper() if task else None)
    if title and named:
        return title.record(value=named)
    name, stem = file_name(source.path, vocabulary), stem_of(source.path)
    if name.id and name.severity:
        return source.text(0, 0).record(value=name.id)
    hint = "add a row 'Ticket ID' to the metadata"
    source.report(
        "id-missing", 0, f"no ID; the file's name stands in for it: {stem}", hint
    )
    given = name.id if name.id and metadata.get("Status") else stem.upper()
    return (title or source.text(0, 0)).record(value=given)


def _read_title(metadata: Metadata, title: Excerpt | None, document_id: str) -> Values:
    """The title without the ID and the words that only say what kind of document it is."""
    stated = metadata.get("Title")
    if title is None and stated:
        return stated.value.record(value=stated.plain)
    if title is None:
        source = metadata.source
        source.report("title", 0, "no title; write one as '# Finding Ticket: ...'")
        return source.text(0, 0).record(value=stem_of(source.path))
    words = title.plain
    before = _COLON_OR_DASH.split(words, maxsplit=1)[0]
    if _REVIEW_TITLE.search(before):
        rest = words[len(before) :].lstrip(_SEPARATORS)
    else:
        rest = _FINDING_TITLE.sub("", _SIGN.sub("", words), count=1)
        rest = NUMBERED_TITLE.sub("", rest, count=1)
        own = re.match(rf"(?i)\[?{re.escape(document_id)}(?:\.md)?\]?(?![\w-])", rest)
        rest = _NUMBERED.sub(
            "", rest[own.end() :].lstrip(_SEPARATORS) if own else rest, count=1
        )
        grade = GRADE.match(rest)
        if grade and word_for(grade["word"], metadata.source.vocabulary.severities):
            rest = rest[grade.end() :].lstrip(_SEPARATORS)
    if stated and (not rest or _BOILERPLATE.fullmatch(rest.strip(_SEPARATORS))):
        return stated.value.record(value=stated.plain)
    return title.record(value=rest or words)


def is_finding_title(title: str) -> bool:
    """Return True if a heading calls its document a finding, if only as the template of findings does."""
    return bool(_FINDING_TITLE.match(title) or _BOILERPLATE.fullmatch(title.strip()))


def _leading_id(source: Source, title: str) -> str | None:
    """The ID with which a title begins: ``BUG-025: ...``, ``[BUG-025] ...``, ``Bug Ticket: BUG-025: ...``."""
    pattern = source.vocabulary.id_pattern
    rest = _FINDING_TITLE.sub("", _SIGN.sub("", title), count=1)
    match = re.match(
        rf"(?:\[({pattern})\]|({pattern})\s*(?:[:|\uff1a]|\s[-\u2013\u2014\u00b7\u2022]\s|$))",
        rest,
    )
    if match:
        return (match[1] or match[2]).upper()
    # Any first word with a number is the ID if the file is called after it: no text says "UTF-8" so.
    word = _FIRST_WORD.match(rest)
    name = word["word"] or word["number"] if word else None
    is_name = name and re.match(rf"(?i){name}(?![^\W_])", stem_of(source.path))
    return name.upper() if name and is_name else None
