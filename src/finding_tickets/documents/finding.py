"""A finding ticket: which of its sections says what, and which other tickets they name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from finding_tickets.documents.cross_reviews import read_reviews, reviewer_word
from finding_tickets.documents.locations import read_code, read_locations, read_mentioned, stated_locations
from finding_tickets.documents.metadata import (
    LABELS,
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
from finding_tickets.documents.sections import DocumentPart, SectionKind, parts_by_kind
from finding_tickets.documents.source import Excerpt, MarkdownTable, Source, Values, walk
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
_OPEN = re.compile(r"\W*(?:partial\w*|partly|mixed|mostly|unclear|unverified|misleading|n/a)\b|\u26a0")
_FALSE = re.compile(
    r"[\u274c\u2716\u2717\u2718]|\b(?:false|incorrect|wrong|inaccurate|refuted|invalid|outdated|untrue|no)\b"
    r"|\bnot (?:true|accurate|correct|valid|confirmed|verified)\b"
)
_TRUE = re.compile(r"[\u2705\u2713\u2714]|\b(?:true|correct|confirmed|verified|valid|accurate|yes|proven)\b")
_FILE_KEYS = frozenset(["reportfile", "report", "file", "source", "sourcereport", "originalreport"])
_REPORT_LABELS = re.compile(r"reportfiles?|section")
_SUMMARIES = (
    *("Summary", "Problem", "Description", "Issue", "Symptom"),
    *("Observed Behaviour", "Observed Behavior"),
)
_FIXES = ("Recommended Fix", "Proposed Fix", "Suggested Fix", "Fix Plan", "Fix", "Recommendation")
# Text, and no row of a table or key of a mapping that something broke.
_PROSE = re.compile(r"[\w`*(\[\"'](?![\w ]*:\s)(?![\w ]*:$)")
_DONE = (SectionKind.RESOLUTION, SectionKind.CORRECTION)
_CHECKED = (SectionKind.VERIFICATION, *_DONE)

# Related findings.
_NOTHING = re.compile(
    r"[\W_]*(?:(?:none|n/?a|nothing|tbd)(?![^\W_]).*|no (?:known |directly )?(?:related|other|duplicate).*)?",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"related (?:ticket|finding)s?\s*:", re.IGNORECASE)
_BEFORE_NOTE = " \t:-\u2013\u2014"
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_ASIDE = re.compile(r"\s*(?:\(.*\))?")
_KIND_BEHIND = re.compile(r"\s*\((?P<kind>[^)]*)\)")
_TO = re.compile(r"\s*(?:-|\u2013|\u2014|\.\.\.?|to|through|thru)\s*", re.IGNORECASE)
_AND = re.compile(r"\s*(?:,|/|&|\band\b|;)\s*(?:and\s+)?", re.IGNORECASE)
_ROWS = re.compile(
    r"related(?:to|tickets|findings)?|duplicateof|duplicates|blocks|blockedby|dependson|seealso"
)
KIND_COLUMNS = re.compile(r"(?:relation|type|link).*", re.DOTALL)
NOTE_COLUMNS = re.compile(r"(?:note|desc|reason|why).*", re.DOTALL)
_LONGEST_RANGE = 100
# So many characters before an ID may say how it is related; a longer text would be searched for each ID.
_LONGEST_REASON = 200
RELATIONSHIPS = Spelled(
    {
        Relationship.RELATED.value: ("related to", "see also", "see", "relates to"),
        Relationship.DUPLICATE.value: ("duplicate of", "duplicates", "duplicated by", "same as"),
        Relationship.BLOCKS.value: ("blocking", "blocker for"),
        Relationship.BLOCKED_BY.value: ("depends on", "blocked", "requires", "dependencies", "depends"),
    }
)
"""The words that documents state a relationship in, beside the vocabulary's own."""

# The last of these before an ID says how it is related; a negation takes it back.
_IN_WORDS = re.compile(
    r"(?P<no>\b(?:not|no|non)\b[\w\s-]{0,12})?"
    r"\b(?P<kind>blocked[ -]by|depends on|duplicates?(?: of)?|block(?:s|ing)|related|see)\b",
    re.IGNORECASE,
)


def read_finding(sections: Sequence[DocumentPart], metadata: Metadata, title: Excerpt | None) -> Ticket:
    """Return the ticket that ``sections`` make up."""
    source, words = metadata.source, metadata.source.vocabulary
    of_kind = parts_by_kind(sections)
    # All sections but these two are in the ticket's own words.
    own = [p for p in sections if p.kind not in (SectionKind.METADATA, SectionKind.CROSS_REVIEW)]
    weighed = [p for p in sections if p.kind in _DONE or (p.kind is None and "severity" in p.name.split())]
    locations = [place for part in of_kind[SectionKind.LOCATION] for place in read_locations(part)]
    if not of_kind[SectionKind.LOCATION]:
        # Without such a section, places in the metadata count, or the files that were changed.
        changed = (place for part in of_kind[SectionKind.FILES_CHANGED] for place in read_mentioned(part))
        locations = stated_locations(metadata.entries.values()) or list(changed)
    # The one-line summary, else the first paragraph of what says what the problem is.
    summaries = (
        text.record()
        for part in (*of_kind[SectionKind.SUMMARY], *of_kind[SectionKind.PROBLEM])
        for text in (*(each.value for each in part.entries if each.key.endswith("summary")), *part.paragraphs)
    )
    fixes = (part.body.record() for part in of_kind[SectionKind.FIX])
    agent, agents = metadata.string("Agent"), [each["value"] for each in metadata.strings("Agent")]
    if agent and agents:
        # The first of several, in the register's word where it has one.
        agent["value"] = reviewer_word(agents[0], words) or agents[0]
    status = metadata.word("Status", words.statuses)
    # Rows such as ``Duplicate Of`` or ``Blocked By`` name tickets as well.
    rows = (entry for entry in metadata.entries.values() if _ROWS.fullmatch(entry.key) and entry.value.raw)
    related = [named for entry in rows for named in _of_line(entry.value, _kind(entry.label))]
    related += (named for part in of_kind[SectionKind.RELATED] for named in read_relations(part))
    related += (named for part in of_kind[SectionKind.REFERENCES] for named in read_references(part))
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
        "locations": locations,
        "summary": next(summaries, None)
        or _labelled(metadata, _SUMMARIES)
        or next(_opening(sections, title), None),
        "recommended_fix": next(fixes, None) or _labelled(metadata, _FIXES),
        "categories": [
            item for part in of_kind[SectionKind.SUMMARY] for item in read_checklist(part, "name", "ticked")
        ],
        "evidence": [
            code
            for kind in (SectionKind.PROBLEM, SectionKind.DESCRIPTION, None)
            for part in of_kind[kind]
            for code in read_code(part)
        ],
        "related": related,
        "reports": [report for part in of_kind[SectionKind.APPENDIX] for report in _reports(part)],
        "checklist": [item for part in _checked(sections) for item in read_checklist(part)],
        "reviews": read_reviews(sections),
        "severity_changes": read_severity_changes(metadata, weighed),
        "checked_claims": list(_checked_claims(own)),
        "corrections": list(read_corrections(own)),
        "remediation": next(map(read_remediation, of_kind[SectionKind.REMEDIATION]), None),
        "sections": [part.record() for part in sections],
        **read_resolution(of_kind, metadata, status),
    }
    # What the file's name or its folder says counts only where the ticket does not say it itself. Such values
    # have an empty span, so that no edit takes them for text.
    if values["severity"] is None or not values["domains"]:
        named = file_name(source.path, words)
        if named.severity and values["severity"] is None:
            values["severity"] = source.text(0, 0).record(value=named.severity)
        if named.domain and not values["domains"]:
            values["domains"] = [source.text(0, 0).record(value=named.domain)]
    if filed := words.folder_of(source.path):
        _fill_in(values, filed[1], source)
    return Ticket.model_validate(values)


def _fill_in(values: Values, said: str, source: Source) -> None:
    """Take from the folder, which says a status or an outcome, what the ticket does not say of the two."""
    is_outcome, own = said in set(Outcome), values["outcome"]
    if values["status"] is None and (is_outcome or not own):
        status = said if said in set(Status) and not own else Status.CLOSED
        values["status"] = source.text(0, 0).record(value=status)
    if is_outcome and not own and values["status"] and values["status"]["value"] not in UNSETTLED | {None}:
        values["outcome"] = source.text(0, 0).record(value=said)


def read_checklist(part: DocumentPart, text: str = "text", done: str = "done") -> Iterator[Values]:
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
            text = source.text(entry.value.start, section.value.end if section else entry.value.end)
            found.append(text.record(file=entry.plain, section=section.plain if section else ""))
    # Without any label, the Markdown files in backticks.
    mentioned = source.text(part.start, part.end).code_spans() if not found else []
    return found or [text.record(file=text.raw, section="") for text in mentioned if text.raw.endswith(".md")]


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
        leading = ((each, _leading(table.source.vocabulary, _LINK.sub(r"\1", each.plain))) for each in cells)
        named = ((each, ids[0]) for each, ids in leading if ids and _ASIDE.fullmatch(ids[1]))
        cell, found = next(named, (cells[0], []))
        if not found and not all(_NOTHING.fullmatch(each.plain) for each in cells):
            _report_no_id(cell)
        how = None
        if related and found and row[related].plain:
            how = _kind(row[related].plain)
            if how is None:
                row[related].report_unknown("the relationship", RELATIONSHIPS)
        note = "" if row[noted] is cell else row[noted].plain
        for ticket in found:
            yield cell.record(id=ticket, relationship=how or Relationship.RELATED, note=note)


def _of_line(text: Excerpt, kind: Relationship | None) -> Iterator[Values]:
    """``B7-PT-03: note``, ``B7-PT-03 (duplicate): note``, ``B7-PT-03 to B7-PT-05``, or text with IDs."""
    vocabulary = text.source.vocabulary
    words = _LINK.sub(r"\1", text.plain) if "](" in text.plain else text.plain
    if leading := _leading(vocabulary, words):
        found, rest = leading
        aside = _KIND_BEHIND.match(rest)
        stated = word_for(aside["kind"], RELATIONSHIPS) if aside else None
        note = (rest[aside.end() :] if aside and stated else rest).strip(_BEFORE_NOTE)
        how = Relationship(stated) if stated else kind or Relationship.RELATED
        for ticket in found:
            yield text.record(id=ticket, relationship=how, note=note)
        return
    # Every ID that a text names counts once, related as the last sentence before it says.
    pattern = re.compile(rf"(?<![\w-])(?:{vocabulary.id_pattern})(?![\w-])")
    named, at = dict[str, Relationship](), 0
    while match := pattern.search(words, at):
        found, at = _run(vocabulary, words, match.start())
        before = re.split(r"[.;]\s", words[max(0, match.start() - _LONGEST_REASON) : match.start()])[-1]
        last = next(iter([*_IN_WORDS.finditer(before)][::-1]), None)
        stated_how = _kind(last["kind"]) if last and not last["no"] else None
        for ticket in found:
            named.setdefault(ticket, stated_how or kind or Relationship.RELATED)
    for ticket, how in named.items():
        yield text.record(id=ticket, relationship=how, note=words)
    if not named and not _NOTHING.fullmatch(words):
        _report_no_id(text)


def _leading(vocabulary: Vocabulary, words: str) -> tuple[list[str], str] | None:
    """The IDs that a line begins with, and what follows them."""
    # IDs may stand in brackets: ``[B7-PT-03]``.
    for start in (1, 0) if words.startswith(("[", "(")) else (0,):
        found, end = _run(vocabulary, words, start)
        if found:
            return found, words[end:].removeprefix("]")
    return None


def _run(vocabulary: Vocabulary, words: str, start: int) -> tuple[list[str], int]:
    """Read the IDs of ``B1-PT-01, B1-PT-02`` or ``B1-PT-01 to B1-PT-05``, and where they end."""
    first = vocabulary.an_id.match(words, start)
    found, end = ([first[0].upper()], first.end()) if first else ([], start)
    # A comma is tried first: a dash may belong to the next ID, or to the remark.
    while found and (joint := _AND.match(words, end) or _TO.match(words, end)):
        following = vocabulary.an_id.match(words, joint.end())
        if not following:
            break
        name, end = following[0].upper(), following.end()
        stem, _, low = found[-1].rpartition("-")
        other, _, high = name.rpartition("-")
        count = int(high) - int(low) if low.isdigit() and high.isdigit() and stem == other else 0
        # A range of thousands is a slip of the pen, not a relation to thousands of tickets.
        if joint.re is _TO and 0 < count <= _LONGEST_RANGE:
            found += [f"{stem}-{each:0{len(low)}d}" for each in range(int(low) + 1, int(high) + 1)]
        else:
            found.append(name)
    return found, end


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


def _labelled(metadata: Metadata, names: Iterable[str]) -> Values | None:
    """Return the text of a ticket without sections under the first of the labels that it has."""
    # ``Issue: BUG-7`` is the ID.
    entries = (metadata.get(name) for name in names)
    return next((entry.value.record() for entry in entries if entry and entry != metadata.stated_id), None)


def _opening(sections: Sequence[DocumentPart], title: Excerpt | None) -> Iterator[Values]:
    """The text below the title that is neither a labelled value nor a remark on the severity."""
    titles = [part for part in sections if part.headline and title and part.headline.start == title.start]
    for part in (part for part in sections if part in titles or part.level <= 1):
        words = part.source.vocabulary.severities
        for text in filter(lambda text: _PROSE.match(text.raw), part.paragraphs):
            labels = labels_in(part.source, text, LABELS)
            if next(labels, None) is None and next(changes_in(text, words), None) is None:
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
            if not _OPEN.match(lowered) and (_FALSE.search(lowered) or _TRUE.search(lowered)):
                holds = _FALSE.search(lowered) is None
            yield table.text_of(row).record(
                claim=row[claim].plain if claim else "",
                status=found,
                holds=holds,
                evidence=row[evidence].plain if evidence else "",
            )
