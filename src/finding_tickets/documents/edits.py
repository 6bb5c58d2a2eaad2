"""Edit a document in its own form: rows, sections, boxes, related findings.

Of several ways the most likely comes first. The caller takes the first that reads back as wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from finding_tickets.documents.finding import KIND_COLUMNS, RELATIONSHIPS
from finding_tickets.documents.reading import Page
from finding_tickets.documents.sections import DocumentPart, SectionKind
from finding_tickets.documents.source import (
    Block,
    MarkdownTable,
    Splice,
    Splices,
    code_span,
    key_of,
    line_at,
    line_end,
    lines_below,
)
from finding_tickets.errors import BadDataError
from finding_tickets.model.ticket import ChecklistItem, Relation, Text
from finding_tickets.model.vocabulary import Relationship, squeeze, word_for

# What the heading of a section begins with that is kept for the record: nothing is read from it.
EARLIER = "Earlier"

_ROWS = ("TableRow", "TableHead")
_BLANK = b" \t"
_RULE = b"---"
_LEVEL = 2
_BOX = re.compile(rb"[\s>]*(?:[-*+]|\d{1,9}[.)])\s+\[([ \t\r\nxX])\]")

_BOLD = "**"
# An underscore within a word is no markup, and need not be escaped.
_SPECIAL = re.compile(r"[*`\[\]]|(?<!\w)_|_(?!\w)")
_PIPE = re.compile(r"(?<!\\)\|")
_YAML = re.compile(r"\w(?:[\w ./@+()-]*[\w./@+()-])?")
_BETWEEN = re.compile(r"`(\s*[/,;]\s*)`")

_IN_CODE = ("severity", "status", "resolution", "agent", "domain")
_BEFORE_LABEL = re.compile(rb"[\s>|*_`+\d.)\"'-]*")
# Where a new row goes: after the last row whose label stands before its own label in this list.
_ORDER = [
    *(
        "ticketid",
        "severity",
        "status",
        "resolution",
        "batch",
        "agent",
        "domain",
        "assignee",
    ),
    *("coderepository", "created", "updated"),
]

_RELATED = "Related Findings"
_AFTER_RELATED = (
    SectionKind.CROSS_REVIEW,
    SectionKind.RESOLUTION,
    SectionKind.REMEDIATION,
    SectionKind.APPENDIX,
)
_HEADER = (
    "| Ticket ID | Relationship | Notes |",
    "|-----------|--------------|-------|",
)
_ID_COLUMNS = re.compile(r"(?s)(?:ticket|id|finding).*")
_KIND = re.compile(rb"(?P<closing>[*`_\]]*)[ \t]*(?:\((?P<kind>[^()\r\n|]*)\))?")
_MARKER = re.compile(rb"(\d{0,9})([-*+.)])")
# Narrower than what is read as nothing: a text that says more than "none" stays.
_NOTHING = re.compile(r"(?i)(none|n/?a|-+|\u2014)\W*|\W*")


def tick(page: Page, item: ChecklistItem, done: bool) -> Splice:
    """Tick or clear the box of an item.

    Raises:
        BadDataError: It has none, as far as one can see.
    """
    at = min(item.span.start, item.span.end)
    holders = [
        block
        for block in page.blocks
        if block.kind == "Item" and block.start <= at <= block.end
    ]
    matches = [
        _BOX.match(page.data, holder.start)
        for holder in holders
        if holder.checked is not None
    ]
    boxes = [match for match in matches if match and match.end() <= at]
    if not boxes:
        message = f"no box before {item.text!r} can be found; nothing was changed"
        raise BadDataError(
            message,
            file=page.source.path,
            line=item.span.line,
            hint="edit the file by hand",
        )
    return Splice(*boxes[-1].span(1), b"x" if done else b" ")


def add_section(
    page: Page, title: str, body: Sequence[str], before: Sequence[SectionKind]
) -> Iterator[Splices]:
    """Ways to add a section: before the first one of the given kinds, at the end, before every other one."""
    data = page.data
    followers = [part for part in page.parts if part.level > 1]
    level = min((part.level for part in followers), default=_LEVEL)
    lines = [text.encode() for text in ("#" * level + f" {title}", "", *body)]
    # The document may draw a line between its sections.
    ends = [part.blocks[-1].kind == "Rule" for part in page.parts[:-1] if part.blocks]
    rule = [_RULE, b""] if sum(ends) * 2 > len(ends) else []

    def before_part(part: DocumentPart) -> Splices:
        start = line_at(data, part.start).start
        return [
            Splice(start, start, line_end(data, start).join([*lines, b"", *rule, b""]))
        ]

    yield from (
        before_part(part)
        for part in [part for part in followers if part.kind in before][:1]
    )
    last = line_at(data, len(data))
    blocks = [block for part in page.parts for block in part.blocks]
    ended = not blocks or blocks[-1].kind == "Rule"
    gap = (
        [] if not data[line_at(data, max(last.start - 1, 0)).start :].strip() else [b""]
    )
    end = line_end(data, len(data))
    text = end.join([*gap, *([] if ended else rule), *lines, b""])
    yield [
        Splice(len(data), len(data), (end if last.start < len(data) else b"") + text)
    ]
    yield from (before_part(part) for part in reversed(followers))


def add_below(page: Page, heading: Block, body: Sequence[str]) -> Splices:
    """Put lines between a heading and what follows it."""
    return [_apart(page, heading, *(text.encode() for text in body))]


def mark_earlier(heading: Block) -> Splice:
    """Mark a section as one that was true once; its text stays."""
    return Splice(heading.first, heading.first, f"{EARLIER} ".encode())


def _apart(page: Page, block: Block, *texts: bytes) -> Splice:
    """Add lines below a block, with blank lines around them."""
    data = page.data
    line = line_at(data, page.source.whole(block).end)
    follows = data[line.after : line_at(data, line.after).end].strip()
    return lines_below(data, line, b"", *texts, *([b""] if follows else []))


# How a value is written, so that it looks like the value before it and reads back unchanged.


def spellings(values: Sequence[str], like: str, *, cell: bool) -> Iterator[str]:
    """Yield ways to write one or several values: in the markup of ``like``, bare, and as code."""
    between = _BETWEEN.search(like)
    separator = between[1] if between else ", "
    # The markup of the old value may not suit the new one; the caller takes the first that reads back.
    for markup in (_markup_of(like), _bare, code_span):
        written = separator.join(markup(value) for value in values)
        # A pipe would end the cell of a table.
        yield _PIPE.sub(r"\|", written) if cell else written


def _in_yaml(values: Sequence[str], like: str, quote: str = "") -> Iterator[str]:
    """Ways to write one or several values of front matter, where ``like`` stands: bare, or in quotes."""
    for mark in dict.fromkeys((quote, "", '"', "'")):
        means_itself = (
            mark not in each and "\\" not in each if mark else _YAML.fullmatch(each)
            for each in values
        )
        if all(means_itself):
            written = ", ".join(f"{mark}{value}{mark}" for value in values)
            yield (
                f"[{written}]"
                if len(values) > 1 or like.startswith(("[", "- "))
                else written
            )


def _markup_of(like: str) -> Callable[[str], str]:
    """Return a function that writes a value like ``like``: in bold, as code, both or neither."""
    inner = like.removeprefix(_BOLD).removesuffix(_BOLD)
    bold = _BOLD if len(inner) == len(like) - 2 * len(_BOLD) else ""
    inside = code_span if inner.startswith("`") and inner.endswith("`") else _bare
    return lambda value: f"{bold}{inside(value)}{bold}"


def _bare(value: str) -> str:
    """Return a value as text that shows each of its characters."""
    return _SPECIAL.sub(r"\\\g<0>", value)


# Rows of the metadata.


def row_of(page: Page, labels: Sequence[str]) -> tuple[str, Text] | None:
    """The row that has one of ``labels``, as it is written there, with its value; one with a value first."""
    wanted = list(map(squeeze, labels))
    rows = [
        (label, value)
        for label, value in page.document.metadata.items()
        if key_of(label) in wanted
    ]
    rows.sort(key=lambda row: (not row[1].raw, wanted.index(key_of(row[0]))))
    return rows[0] if rows else None


def set_row(
    page: Page, labels: Sequence[str], values: Sequence[str]
) -> Iterator[Splices]:
    """Yield ways to give the row with one of ``labels`` new values, or to add it."""
    like = ""
    if squeeze(labels[0]) in _IN_CODE:
        # Words are code where the document's other words are.
        others = (
            row_of(page, [name]) for name in ("Severity", "Status", "Ticket ID", "ID")
        )
        like = next((other[1].raw for other in others if other and other[1].raw), "")
    row = row_of(page, labels)
    yield from (
        _replace_row(page, *row, values, like)
        if row
        else _add_row(page, labels[0], values, like)
    )


def _replace_row(
    page: Page, label: str, value: Text, values: Sequence[str], like: str
) -> Iterator[Splices]:
    data, (start, end, _) = page.data, value.span
    table_row = page.enclosing(value, _ROWS, label)
    if page.enclosing(value, ["FrontMatter"]):
        quote = (
            data[start - 1 : start].decode()
            if value.raw and data[start - 1 : start] in b"\"'"
            else ""
        )
        start, end = start - len(quote), end + len(quote)
        if start == end:
            start = end = len(data[:start].rstrip())
        for text in _in_yaml(values, value.raw, quote):
            yield [
                Splice(start, end, text.encode() if value.raw else b" " + text.encode())
            ]
        return
    like = value.raw or (like if squeeze(label) in _IN_CODE else "")
    for text in spellings(values, like, cell=table_row is not None):
        written = text.encode()
        if not value.raw and table_row:
            yield [_fill_cell(data, start, table_row, written)]
        elif not value.raw:
            at = len(data[:start].rstrip())
            yield [Splice(at, at, b" " + written)]
        elif table_row or not re.search(r"[\r\n]", value.raw):
            yield [Splice(start, end, written)]
        else:
            # What follows the value's first line is text that somebody wrote: it becomes its own paragraph.
            line = line_at(data, start)
            until = line.start + len(data[line.start : line.end].rstrip(_BLANK))
            yield [Splice(start, until, written + line_end(data, line.start))]


def _fill_cell(data: bytes, at: int, row: Block, written: bytes) -> Splice:
    """Fill the blank between two pipes, or add the cell that the row ends without."""
    end = row.start + len(data[row.start : row.end].rstrip())
    closed = data[:end].endswith(b"|")
    if at > end or (at == end and closed):
        return Splice(end, end, b" " + written + b" |" if closed else b" | " + written)
    # One space on either side, counting those that are there.
    start = len(data[:at].rstrip(_BLANK))
    blank = end - len(data[at:end].lstrip(_BLANK)) - start
    inner = start + min(1, blank)
    return Splice(inner, inner, b" " * (blank < 1) + written + b" " * (blank < 2))


def _add_row(
    page: Page, label: str, values: Sequence[str], like: str
) -> Iterator[Splices]:
    """Yield ways to add a row in the markup of ``like``: below another row, else below the title."""
    rows, key = list(page.document.metadata.items()), squeeze(label)
    before = _ORDER[: _ORDER.index(key)] if key in _ORDER else []
    preceding = [row for row in rows if squeeze(row[0]) in before]
    preceding.sort(key=lambda row: _ORDER.index(squeeze(row[0])))
    siblings = [
        *reversed(preceding),
        *(row for row in reversed(rows) if row not in preceding),
    ]
    in_front = any(page.enclosing(value, ["FrontMatter"]) for _, value in rows)
    for text in (
        _in_yaml(values, "") if in_front else spellings(values, like, cell=True)
    ):
        for sibling, value in siblings:
            splice = _row_below(page, sibling, value, label, text)
            if splice:
                yield [splice]
    heading = next((part.heading for part in page.parts if part.heading), None)
    if heading:
        for text in spellings(values, like, cell=False):
            yield [_apart(page, heading, f"**{label}:** {text}".encode())]


def _row_below(
    page: Page, sibling: str, value: Text, label: str, text: str
) -> Splice | None:
    """Return a new row below ``sibling`` that is written like it; None where it cannot be told how."""
    data, row = page.data, page.enclosing(value, _ROWS, sibling)
    start, end = sorted((value.span.start, value.span.end))
    line = line_at(data, row.start if row else start)
    at = data.find(sibling.encode(), line.start, line.end)
    prefix, after = data[line.start : at], at + len(sibling.encode())
    if at < 0 or (after > start and not row) or not _BEFORE_LABEL.fullmatch(prefix):
        return None
    # What stands between a label and its value stays.
    between = data[after : min(start, line.end)].rstrip(_BLANK + b"\"'") + b" "
    # Front matter and some tables write their labels in lower case.
    named = label.lower() if sibling.islower() else label
    written = prefix + named.encode() + between + text.encode()
    if row:
        is_closed = data[line.start : line.end].rstrip().endswith(b"|")
        below = line_at(data, line.after) if row.kind == "TableHead" else line
        return lines_below(data, below, written + b" |" * is_closed)
    item = page.enclosing(value, ["Item"])
    below = line_at(data, page.source.whole(item).end if item else max(end, after))
    trailing = (
        data[max(end, after) : line.end]
        if not value.raw or below.start == line.start
        else b""
    )
    if not trailing.strip():
        written += trailing
    # The document may write each of its labelled lines as a paragraph.
    paragraphs = [
        page.enclosing(each, ["Paragraph"]) for each in page.document.metadata.values()
    ]
    own = page.enclosing(value, ["Paragraph"])
    is_alone = (
        item is None
        and own is not None
        and paragraphs.count(own) == 1 < len(paragraphs)
    )
    return lines_below(data, below, *([b"", written] if is_alone else [written]))


# Related findings.


def name_duplicate(
    page: Page, named: Sequence[Relation], other: str
) -> Iterator[Splices]:
    """Ways to name a duplicate, where ``named`` are the relations that the document states already."""
    for relation in named:
        start, end, _ = relation.span
        at = page.data.upper().find(relation.id.encode(), start, end)
        match = (
            _KIND.match(page.data, at + len(relation.id.encode()), end)
            if at >= 0
            else None
        )
        if relation.id == other and match:
            is_stated = match["kind"] and word_for(
                match["kind"].decode(), RELATIONSHIPS
            )
            until = match.end() if is_stated else match.end("closing")
            yield [
                Splice(
                    match.end("closing"), until, f" ({Relationship.DUPLICATE})".encode()
                )
            ]
    header_and_row = [
        *_HEADER,
        f"| {code_span(other)} | {code_span(Relationship.DUPLICATE)} |  |",
    ]
    related = [part for part in page.parts if part.kind is SectionKind.RELATED]
    for part in related:
        blocks = [block for block in part.blocks if block.kind != "Rule"]
        for block in reversed(blocks):
            if block.kind == "Table":
                yield [_link_row(page, page.source.table(block), other)]
            elif block.kind == "List":
                yield _link_item(page, block, other)
        for block in blocks:
            text = page.source.whole(block)
            if block.kind == "Paragraph" and _NOTHING.fullmatch(text.plain):
                rows = [line.encode() for line in header_and_row]
                yield [
                    Splice(
                        text.start, text.end, line_end(page.data, text.start).join(rows)
                    )
                ]
        last = blocks[-1] if blocks else part.heading
        if last is not None:
            yield [_apart(page, last, f"- {other} ({Relationship.DUPLICATE})".encode())]
    if not related:
        yield from add_section(page, _RELATED, header_and_row, _AFTER_RELATED)


def _link_row(page: Page, table: MarkdownTable, other: str) -> Splice:
    """Return a row below the last one, or instead of one that says that there is nothing."""
    data, titles, header = page.data, table.titles, table.rows[0].block
    own, kind = table.column(_ID_COLUMNS), table.column(KIND_COLUMNS)
    cells = dict.fromkeys(titles, "")
    if kind:
        cells[kind] = code_span(Relationship.DUPLICATE)
    cells[own or titles[0]] = code_span(other)
    text = f"| {' | '.join(cells.values())} |".encode()
    rows = [row for row in table.body if not row.text]
    if len(rows) == 1 and all(
        _NOTHING.fullmatch(cell.plain) for cell in table.cells(rows[0])
    ):
        row = page.source.whole(rows[0].block)
        return Splice(row.start, row.end, text)
    head_line = line_at(data, header.start)
    line = line_at(data, rows[-1].block.start if rows else head_line.after)
    return lines_below(data, line, data[head_line.start : header.start] + text)


def _link_item(page: Page, listing: Block, other: str) -> Splices:
    """Return an item below the last one, with its marker."""
    data, last = page.data, listing.children[-1]
    line = line_at(data, last.start)
    marker = _MARKER.match(data, last.start)
    number, mark = marker.groups() if marker else (b"", b"-")
    mark = b"%d%s" % (int(number) + 1, mark) if number else mark
    item = mark + f" {other} ({Relationship.DUPLICATE})".encode()
    below = line_at(data, page.source.whole(last).end)
    return [lines_below(data, below, data[line.start : last.start] + item)]
