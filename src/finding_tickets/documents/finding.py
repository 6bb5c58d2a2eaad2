"""A finding ticket: which of its sections says what, and which other tickets they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from finding_tickets.documents.cross_reviews import read_reviews, reviewer_word
from finding_tickets.documents.locations import (
    read_cited,
    read_code,
    read_locations,
    read_mentioned,
    stated_locations,
)
from finding_tickets.documents.metadata import (
    GRADE,
    LABELS,
    PLACES,
    Metadata,
    file_name,
    labelled_values,
    labels_in,
    read_header,
)
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.resolutions import (
    changes_in,
    read_corrections,
    read_resolution,
    read_severity_changes,
)
from finding_tickets.documents.sections import (
    TELLING,
    DocumentPart,
    PartsByKind,
    SectionKind,
    nested,
    parts_by_kind,
)
from finding_tickets.documents.source import Excerpt, MarkdownTable, Values, walk
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import (
    UNSETTLED,
    Outcome,
    Relationship,
    Spelled,
    Status,
    Vocabulary,
    word_for,
)

_CLAIM = re.compile(r".*\b(?:claim|assertion|premise)s?\b.*")
_STATUS = re.compile(
    r"status|verdict|result|assessment|accura\w+|correct\??|true\??|verified\??|valid\??|holds\??"
)
_EVIDENCE = re.compile(
    r"(?:.* )?(?:evidence|reality|actual\w*|proof|notes?|details?|finding|code|explanation)"
)
_OPEN = re.compile(
    r"\W*(?:partial\w*|partly|mixed|mostly|unclear|unverified|misleading|n/a)\b|\u26a0"
)
_FALSE = re.compile(
    r"[\u274c\u2716\u2717\u2718]|\b(?:false|incorrect|wrong|inaccurate|refuted|invalid|outdated|untrue|no)\b"
    r"|\bnot (?:true|accurate|correct|valid|confirmed|verified)\b"
)
_TRUE = re.compile(
    r"[\u2705\u2713\u2714]|\b(?:true|correct|confirmed|verified|valid|accurate|yes|proven)\b"
)
_FILE_KEYS = [
    "reportfile",
    "report",
    "file",
    "source",
    "sourcereport",
    "originalreport",
]
_REPORT_LABELS = re.compile(r"reportfiles?|section")
_SUMMARIES = "Summary, Problem, Description, Issue, Symptom, Observed Behaviour, Observed Behavior"
_FIXES = "Recommended Fix, Proposed Fix, Suggested Fix, Fix Plan, Fix, Recommendation"
# Text, and no row of a table or key of a mapping that something broke.
_PROSE = re.compile(r"[\w`*(\[\"'](?![\w ]*:\s)(?![\w ]*:$)")
_DONE = (SectionKind.RESOLUTION, SectionKind.CORRECTION)
_CHECKED = (SectionKind.VERIFICATION, *_DONE)
# In these a place is one of what is wrong, and in no fix or reference.
_PLACING = (*TELLING, SectionKind.LOCATION, SectionKind.FILES_CHANGED)

# Related findings.
_NOTHING = re.compile(
    r"(?i)[\W_]*(?:(?:none|n/?a|nothing|tbd)(?![^\W_]).*"
    r"|no (?:known |directly )?(?:related|other|duplicate).*)?"
)
_REFERENCE = re.compile(r"(?i)related (?:ticket|finding)s?\s*:")
_BEFORE_NOTE = " \t:-\u2013\u2014"
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_ASIDE = re.compile(r"\s*(?:\(.*\))?")
_KIND_BEHIND = re.compile(r"\s*\((?P<kind>[^)]*)\)")
_BETWEEN_IDS = re.compile(
    r"[\s,;&/\])]*(?:and\s+|(?P<to>(?:-|\u2013|\.\.|to|through)\s*))?[\[(]?"
)
_LONGEST_RANGE = 100
_PATH = re.compile(r"\w/\w|\w\.md\b")
_ROWS = re.compile(
    r"related(?:to|tickets|findings)?|duplicateof|duplicates|blocks|blockedby|dependson|seealso"
)
KIND_COLUMNS = re.compile(r"(?s)(?:relation|type|link).*")
NOTE_COLUMNS = re.compile(r"(?s)(?:note|desc|reason|why).*")
# The words that documents state a relationship in, beside the vocabulary's own.
RELATIONSHIPS = Spelled(
    {
        Relationship.RELATED: ("related to", "see also", "see", "relates to"),
        Relationship.DUPLICATE: (
            "duplicate of",
            "duplicates",
            "duplicated by",
            "same as",
        ),
        Relationship.BLOCKS: ("blocking", "blocker for"),
        Relationship.BLOCKED_BY: (
            "depends on",
            "blocked",
            "requires",
            "dependencies",
            "depends",
        ),
    }
)


def read_finding(
    sections: Sequence[DocumentPart], metadata: Metadata, title: Excerpt | None
) -> Ticket:
    """Return the ticket that ``sections`` make up."""
    source, words = metadata.source, metadata.source.vocabulary
    of_kind = parts_by_kind(sections)
    # All sections but these two are in the ticket's own words.
    own = [
        p
        for p in sections
        if p.kind not in (SectionKind.METADATA, SectionKind.CROSS_REVIEW)
    ]
    weighed = [
        p
        for p in sections
        if p.kind in _DONE or (p.kind is None and "severity" in p.name.split())
    ]
    fixes = (part.body.record() for part in of_kind[SectionKind.FIX])
    agent, agents = (
        metadata.string("Agent"),
        [each["value"] for each in metadata.strings("Agent")],
    )
    if agent and agents:
        # The first of several, in the register's word where it has one.
        agent["value"] = reviewer_word(agents[0], words) or agents[0]
    status = metadata.word("Status", words.statuses)
    # Rows such as ``Duplicate Of`` or ``Blocked By`` name tickets as well.
    rows = (
        entry
        for entry in metadata.entries.values()
        if _ROWS.fullmatch(entry.key) and entry.value.raw
    )
    related = [
        named for entry in rows for named in _of_line(entry.value, _kind(entry.label))
    ]
    related += (
        named for part in of_kind[SectionKind.RELATED] for named in read_relations(part)
    )
    related += (
        named
        for part in of_kind[SectionKind.REFERENCES]
        for named in read_references(part)
    )
    values: Values = {
        **read_header(metadata, title),
        "severity": metadata.word("Severity", words.severities, mentioned=True),
        "status": status,
        "batch": metadata.number("Batch"),
        "agent": agent if agents else None,
        "domains": metadata.strings("Domain"),
        "assignee": metadata.string("Assignee"),
        "created": metadata.string("Created"),
        "updated": metadata.string("Updated"),
        "locations": _locations(own, metadata),
        "summary": next((text.record() for text in _summaries(of_kind)), None)
        or _labelled(metadata, _SUMMARIES)
        or next(_opening(sections, title), None),
        "recommended_fix": next(fixes, None) or _labelled(metadata, _FIXES),
        "categories": [
            item
            for part in of_kind[SectionKind.SUMMARY]
            for item in read_checklist(part, "name", "ticked")
        ],
        "evidence": [
            code
            for kind in (SectionKind.PROBLEM, SectionKind.DESCRIPTION, None)
            for part in of_kind[kind]
            for code in read_code(part)
        ],
        "related": related,
        "reports": [
            report
            for part in of_kind[SectionKind.APPENDIX]
            for report in _reports(part)
        ],
        "checklist": [
            item for part in _checked(sections) for item in read_checklist(part)
        ],
        "reviews": read_reviews(sections),
        "severity_changes": read_severity_changes(metadata, weighed),
        "checked_claims": list(_checked_claims(own)),
        "corrections": list(read_corrections(own)),
        "remediation": next(
            map(read_remediation, of_kind[SectionKind.REMEDIATION]), None
        ),
        "sections": [part.record() for part in sections],
        **read_resolution(of_kind, metadata, status),
    }
    # What the file's name or its folder says counts only where the ticket does not say it itself. Such values
    # have an empty span, so that no edit takes them for text.
    if values["severity"] is None or not values["domains"]:
        named = file_name(source.path, words)
        tags = [match["word"] for match in GRADE.finditer(title.plain if title else "")]
        tags += [each["value"] for each in metadata.strings("Labels")]
        graded = next(
            (word for tag in tags if (word := word_for(tag, words.severities))),
            named.severity,
        )
        if graded and values["severity"] is None:
            values["severity"] = source.text(0, 0).record(value=graded)
        if named.domain and not values["domains"]:
            values["domains"] = [source.text(0, 0).record(value=named.domain)]
    if filed := words.folder_of(source.path):
        # A folder says a status or an outcome.
        said, own = filed[1], values["outcome"]
        is_outcome = said in set(Outcome)
        if values["status"] is None and (
            is_outcome or not own or said == Status.CLOSED
        ):
            state = said if said in set(Status) and not own else Status.CLOSED
            values["status"] = source.text(0, 0).record(value=state)
        if (
            is_outcome
            and not own
            and values["status"]
            and values["status"]["value"] not in UNSETTLED | {None}
        ):
            values["outcome"] = source.text(0, 0).record(value=said)
    return Ticket.model_validate(values)


def _summaries(of_kind: PartsByKind) -> Iterator[Excerpt]:
    """The one-line summary, else the first paragraph of what says what the problem is, or its first item."""
    for part in (*of_kind[SectionKind.SUMMARY], *of_kind[SectionKind.PROBLEM]):
        yield from (each.value for each in part.entries if each.key.endswith("summary"))
        yield from part.paragraphs
    for kind in (SectionKind.SUMMARY, SectionKind.PROBLEM, SectionKind.DESCRIPTION):
        for part in of_kind[kind]:
            items = [
                part.source.words(item)
                for item in part.by_kind["Item"]
                if item.checked is None
            ]
            yield from (
                text for text in (*part.paragraphs, *items) if _PROSE.match(text.raw)
            )


def _locations(own: Sequence[DocumentPart], metadata: Metadata) -> list[Values]:
    """The places in sections about them, else in the metadata, the files that were changed, or the text."""
    parts = [part for part in own if part.kind is SectionKind.LOCATION]
    # A section about places may stand within another one.
    parts = parts or [part for part in nested(own) if part.kind is SectionKind.LOCATION]
    if found := [place for part in parts for place in read_locations(part)]:
        return found
    changed = [part for part in own if part.kind is SectionKind.FILES_CHANGED]
    return (
        stated_locations(metadata.entries.values())
        or [place for part in changed for place in read_mentioned(part)]
        or stated_locations(
            entry
            for part in _telling(own)
            for entry in labelled_values(part.source, part.blocks, PLACES)
        )
        or read_cited(_telling(own))
    )


def _telling(parts: Iterable[DocumentPart]) -> Iterator[DocumentPart]:
    """Yield the parts that say what is wrong; a fix or a reference within them is left out."""
    for part in parts:
        if part.kind in _PLACING:
            yield from _telling(part.pieces) if part.parts else [part]


def read_checklist(
    part: DocumentPart, text: str = "text", done: str = "done"
) -> Iterator[Values]:
    """Every item with a check box, under the names of its two fields."""
    for item in part.by_kind["Item"]:
        if item.checked is not None:
            written = part.source.words(item)
            yield written.record(**{text: written.plain, done: item.checked})


def _reports(part: DocumentPart) -> list[Values]:
    """Read the reports that an appendix names: ``Report file`` with ``Section``, or files."""
    source, found = part.source, []
    entries = list(labelled_values(source, part.blocks, _REPORT_LABELS))
    for entry, after in zip(entries, [*entries, None][1:], strict=True):
        if entry.key in _FILE_KEYS:
            section = after if after and after.key in ("section", "sections") else None
            text = source.text(
                entry.value.start, section.value.end if section else entry.value.end
            )
            found.append(
                text.record(file=entry.plain, section=section.plain if section else "")
            )
    # Without any label, the Markdown files in backticks.
    mentioned = source.text(part.start, part.end).code_spans() if not found else []
    return found or [
        text.record(file=text.raw, section="")
        for text in mentioned
        if text.raw.endswith(".md")
    ]


# Related findings: a table, a list of IDs with notes, or text that names them.


def read_relations(part: DocumentPart) -> Iterator[Values]:
    """The tickets that a section of related findings names, in tables, lists and paragraphs."""
    source = part.source
    for block in part.blocks:
        if block.kind == "Table":
            yield from _of_table(source.table(block))
        elif block.kind == "List":
            for item in walk([block]):
                if item.kind == "Item":
                    yield from _of_line(source.words(item), None)
        elif block.kind == "Paragraph" and not source.whole(block).plain.endswith(":"):
            yield from _of_line(source.whole(block), None)


def read_references(part: DocumentPart) -> Iterator[Values]:
    """The tickets among a list of references: the items that begin with ``Related ticket:``."""
    for item in part.by_kind["Item"]:
        text = part.source.words(item)
        if match := _REFERENCE.match(text.raw):
            yield from _of_line(text.piece(match.end()), None)


def _of_table(table: MarkdownTable) -> Iterator[Values]:
    related = table.column(KIND_COLUMNS)
    noted = table.column(NOTE_COLUMNS) or table.titles[-1]
    for row in table.records:
        cells = list(row.values())
        # A cell of IDs is nothing but these and a remark in brackets.
        cell, found = cells[0], list[str]()
        for each in cells:
            leading, rest = _leading(
                table.source.vocabulary, _LINK.sub(r"\1", each.plain)
            )
            if leading and not found and _ASIDE.fullmatch(rest):
                cell, found = each, leading
        if not found and not all(_NOTHING.fullmatch(each.plain) for each in cells):
            _report_no_id(cell)
        how = None
        if related and found and row[related].plain:
            how = _kind(row[related].plain)
            if how is None:
                row[related].report_unknown("the relationship", RELATIONSHIPS)
        note = "" if row[noted] is cell else row[noted].plain
        for ticket in found:
            yield cell.record(
                id=ticket, relationship=how or Relationship.RELATED, note=note
            )


def _of_line(text: Excerpt, kind: Relationship | None) -> Iterator[Values]:
    """Each ID of a line: ``B7-PT-03: note``, ``B7-PT-03 (duplicate): note``, ``Blocked by B7-PT-03``."""
    vocabulary = text.source.vocabulary
    words = _LINK.sub(r"\1", text.plain) if "](" in text.plain else text.plain
    found, rest = _leading(vocabulary, words)
    if found:
        aside = _KIND_BEHIND.match(rest)
        stated = _kind(aside["kind"]) if aside else None
        note = (rest[aside.end() :] if aside and stated else rest).strip(_BEFORE_NOTE)
        for ticket in found:
            yield text.record(
                id=ticket,
                relationship=stated or kind or Relationship.RELATED,
                note=note,
            )
        return
    # A piece of a path or of a longer name is no ID.
    pattern = re.compile(rf"(?<![\w./-])(?:{vocabulary.id_pattern})(?![\w/-]|\.\w)")
    how, named = kind, list[str]()
    for match in pattern.finditer(words):
        how = how or _kind(words[: match.start()])
        named.append(match[0].upper())
    for ticket in dict.fromkeys(named):
        yield text.record(
            id=ticket, relationship=how or Relationship.RELATED, note=words
        )
    if not (named or _NOTHING.fullmatch(words) or _PATH.search(words)):
        _report_no_id(text)


def _leading(vocabulary: Vocabulary, words: str) -> tuple[list[str], str]:
    """Return the IDs that a line begins with, ``[B1-PT-01], B1-PT-02 to B1-PT-04``, and what follows them."""
    found, at = list[str](), 0
    while joint := _BETWEEN_IDS.match(words, at):
        match = vocabulary.an_id.match(words, joint.end())
        if not match:
            break
        name = match[0].upper()
        if joint["to"] and found:
            found += _between(found[-1], name)
        found.append(name)
        at = match.end()
    return found, words[at:].removeprefix("]")


def _between(first: str, last: str) -> list[str]:
    """Return the IDs of a series between two of it; none of thousands, which are a slip of the pen."""
    series, _, low = first.rpartition("-")
    other, _, high = last.rpartition("-")
    if (
        series != other
        or not (low.isdigit() and high.isdigit())
        or int(high) - int(low) > _LONGEST_RANGE
    ):
        return []
    return [f"{series}-{each:0{len(low)}d}" for each in range(int(low) + 1, int(high))]


def _kind(words: str) -> Relationship | None:
    """Return the relationship that words such as ``Blocked by`` state."""
    word = word_for(words, RELATIONSHIPS)
    return Relationship(word) if word else None


def _report_no_id(text: Excerpt) -> None:
    message = f"no ticket ID in {text.plain[:60]!r}"
    text.report("related-id", message, "start with the ID: B1-PT-02: why it matters")


def _checked(sections: Sequence[DocumentPart]) -> Iterator[DocumentPart]:
    """The parts whose check boxes are checks: the verification, what was done, and parts so headed within."""
    for part in sections:
        if part.kind in _CHECKED or (len(sections) == 1 and part.level == 1):
            yield part
        elif part.kind is not SectionKind.CROSS_REVIEW and any(
            item.checked is not None for item in part.by_kind["Item"]
        ):
            yield from _checked(part.parts)


def _labelled(metadata: Metadata, names: str) -> Values | None:
    """Return the text of a ticket without sections under the first of the labels that it has."""
    # ``Issue: BUG-7`` is the ID.
    entries = (metadata.get(name) for name in names.split(", "))
    return next(
        (
            entry.value.record()
            for entry in entries
            if entry and entry != metadata.stated_id
        ),
        None,
    )


def _opening(
    sections: Sequence[DocumentPart], title: Excerpt | None
) -> Iterator[Values]:
    """The text below the title that is neither a labelled value nor a remark on the severity."""
    titles = [
        part
        for part in sections
        if part.headline and title and part.headline.start == title.start
    ]
    for part in (part for part in sections if part in titles or part.level <= 1):
        words = part.source.vocabulary.severities
        for text in filter(lambda text: _PROSE.match(text.raw), part.paragraphs):
            labels = labels_in(part.source, text, LABELS)
            if (
                next(labels, None) is None
                and next(changes_in(text, words), None) is None
            ):
                yield text.record()


def _checked_claims(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """Yield the rows of tables with a column of claims and one of their outcomes."""
    for table in (table for part in parts for table in part.tables):
        claim = table.column(_CLAIM)
        status = table.column(_STATUS, claim)
        evidence = table.column(_EVIDENCE, claim, status)
        for row in table.records if claim and (status or evidence) else ():
            found = row[status].plain if status else ""
            lowered, holds = found.lower(), None
            # "Partially true" decides nothing, and "not correct" is looked for before "correct".
            if not _OPEN.match(lowered) and (
                _FALSE.search(lowered) or _TRUE.search(lowered)
            ):
                holds = _FALSE.search(lowered) is None
            yield table.text_of(row).record(
                claim=row[claim].plain if claim else "",
                status=found,
                holds=holds,
                evidence=row[evidence].plain if evidence else "",
            )
