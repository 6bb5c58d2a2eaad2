"""A finding ticket: which of its sections says what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from finding_tickets.documents.cross_reviews import read_reviews, reviewer_word, reviewing
from finding_tickets.documents.locations import read_code, read_locations, read_mentioned, stated_locations
from finding_tickets.documents.metadata import (
    LABELS,
    Metadata,
    file_name,
    item_text,
    labelled_values,
    labels_in,
    read_id,
    read_title,
)
from finding_tickets.documents.relations import read_references, read_relations, stated_relations
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.resolutions import (
    changes_in,
    read_corrections,
    read_resolution,
    read_severity_changes,
)
from finding_tickets.documents.sections import DocumentPart, SectionKind, sections_by_kind
from finding_tickets.documents.source import Excerpt, Source, Values, row_of_record
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import UNSETTLED, Outcome, Status

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
_REPORT_SECTION = re.compile(r"\s*section\s*:\s*", re.IGNORECASE)
_SUMMARIES = (
    *("Summary", "Problem", "Description", "Issue", "Symptom"),
    *("Observed Behaviour", "Observed Behavior"),
)
_FIXES = ("Recommended Fix", "Proposed Fix", "Suggested Fix", "Fix Plan", "Fix", "Recommendation")
# Text, and no row of a table or key of a mapping that something broke.
_PROSE = re.compile(r"[\w`*(\[\"'](?![\w ]*:\s)(?![\w ]*:$)")
_DONE = (SectionKind.RESOLUTION, SectionKind.CORRECTION)
_CHECKED = (SectionKind.VERIFICATION, *_DONE)


def read_finding(
    source: Source, sections: Sequence[DocumentPart], metadata: Metadata, title: Excerpt | None
) -> Ticket:
    """The ticket that ``sections`` make up."""
    words, named = source.vocabulary, file_name(source.path, source.vocabulary)
    of_kind = sections_by_kind(sections)
    # All sections but these two are in the ticket's own words.
    own = [p for p in sections if p.kind not in (SectionKind.METADATA, SectionKind.CROSS_REVIEW)]
    weighed = [p for p in sections if p.kind in _DONE or (p.kind is None and "severity" in p.name.split())]
    locations = [place for part in of_kind[SectionKind.LOCATION] for place in read_locations(part)]
    if not of_kind[SectionKind.LOCATION]:
        # Without such a section, places in the metadata count, or the files that were changed.
        changed = (place for part in of_kind[SectionKind.FILES_CHANGED] for place in read_mentioned(part))
        locations = list(stated_locations(metadata.entries.values())) or list(changed)
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
    identity, status = read_id(metadata, title), metadata.word("Status", words.statuses)
    values: Values = {
        "path": source.path,
        "id": identity,
        "title": read_title(metadata, title, identity["value"]),
        "metadata": metadata.rows,
        "severity": metadata.word("Severity", words.severities, mentioned=True),
        "status": status,
        "batch": metadata.number("Batch"),
        "agent": agent if agents else None,
        "domains": metadata.strings("Domain"),
        "assignee": metadata.string("Assignee"),
        "created": metadata.string("Created"),
        "updated": metadata.string("Updated"),
        "code_repository": metadata.string("Code Repository"),
        "locations": locations,
        "summary": next(summaries, None)
        or _labelled(metadata, _SUMMARIES)
        or next(_opening(sections, title), None),
        "recommended_fix": next(fixes, None) or _labelled(metadata, _FIXES),
        "related": list(stated_relations(metadata.entries.values())),
        "checklist": [item for part in _checked(sections) for item in read_checklist(part)],
        "reviews": [review for part in reviewing(sections) for review in read_reviews(part)],
        "severity_changes": read_severity_changes(metadata, weighed),
        "checked_claims": list(_checked_claims(own)),
        "corrections": list(read_corrections(own)),
        "remediation": next(map(read_remediation, of_kind[SectionKind.REMEDIATION]), None),
        "sections": [part.record() for part in sections],
        **read_resolution(of_kind, metadata, status),
    }
    for field, kind, read in EXTRACTORS:
        values.setdefault(field, []).extend(found for part in of_kind[kind] for found in read(part))
    # What the file's name or its folder says counts only where the ticket does not say it itself. Such values
    # have an empty span, so that no edit takes them for text.
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
            written = item_text(part.source, item)
            yield written.record(**{text: written.plain, done: item.checked})


def _reports(part: DocumentPart) -> list[Values]:
    """The reports that an appendix names: ``Report file`` and ``Section`` in pairs, or a list of files."""
    source, found = part.source, []
    entries = list(labelled_values(source, part.blocks, _REPORT_LABELS))
    for entry, after in zip(entries, [*entries, None][1:], strict=True):
        if entry.key in _FILE_KEYS:
            section = after if after and after.key in ("section", "sections") else None
            text = source.text(entry.value.start, section.value.end if section else entry.value.end)
            found.append(text.record(file=entry.plain, section=section.plain if section else ""))
    # The oldest tickets list files below the label ``Report files``: each in backticks, then its section.
    listed = any(entry.key == "reportfiles" for entry in entries)
    for item in part.by_kind["Item"] if listed else ():
        text = item_text(source, item)
        spans = text.code_spans()
        file = spans[0].raw if spans else text.plain.partition(" ")[0]
        section_name = _REPORT_SECTION.sub("", text.plain.removeprefix(file), count=1).strip()
        found.append(text.record(file=file, section=section_name))
    # Without any label, the Markdown files in backticks.
    mentioned = source.text(part.start, part.end).code_spans() if not found else []
    return found or [text.record(file=text.raw, section="") for text in mentioned if text.raw.endswith(".md")]


EXTRACTORS: tuple[tuple[str, SectionKind | None, Callable[[DocumentPart], Iterable[Values]]], ...] = (
    ("categories", SectionKind.SUMMARY, lambda part: read_checklist(part, "name", "ticked")),
    ("evidence", SectionKind.PROBLEM, read_code),
    ("evidence", SectionKind.DESCRIPTION, read_code),
    ("evidence", None, read_code),
    ("related", SectionKind.RELATED, read_relations),
    ("related", SectionKind.REFERENCES, read_references),
    ("reports", SectionKind.APPENDIX, _reports),
)
"""Which field is read from every section of which kind, and by what; the rest depends on several sections."""


def _checked(sections: Sequence[DocumentPart]) -> Iterator[DocumentPart]:
    """The parts whose check boxes are checks: the verification, what was done, and parts so headed within."""
    for part in sections:
        if part.kind in _CHECKED or (len(sections) == 1 and part.heading and part.heading.level == 1):
            yield part
        elif part.kind is not SectionKind.CROSS_REVIEW and any(True for _ in read_checklist(part)):
            yield from _checked(part.parts)


def _labelled(metadata: Metadata, names: Iterable[str]) -> Values | None:
    """What a ticket without sections says under the first of the labels that it has."""
    # ``Issue: BUG-7`` is the ID.
    entries = (metadata.get(name) for name in names)
    return next((entry.value.record() for entry in entries if entry and entry != metadata.stated_id), None)


def _opening(sections: Sequence[DocumentPart], title: Excerpt | None) -> Iterator[Values]:
    """The text below the title that is neither a labelled value nor a remark on the severity."""
    titles = [part for part in sections if part.headline and title and part.headline.start == title.start]
    for part in (part for part in sections if part in titles or not part.heading or part.heading.level == 1):
        words = part.source.vocabulary.severities
        for text in filter(lambda text: _PROSE.match(text.raw), part.paragraphs):
            labels = labels_in(part.source, text.start, text.end, LABELS)
            if next(labels, None) is None and next(changes_in(text, words), None) is None:
                yield text.record()


def _checked_claims(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """The rows of every table with a column of claims and one that says what came of them."""
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
            yield row_of_record(row).record(
                claim=row[claim].plain if claim else "",
                status=found,
                holds=holds,
                evidence=row[evidence].plain if evidence else "",
            )
