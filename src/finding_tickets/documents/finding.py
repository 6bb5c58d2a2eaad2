"""A finding ticket: which of its sections says what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from finding_tickets.documents.blocks import row_of_record
from finding_tickets.documents.fields import Metadata, labelled_values, text_of
from finding_tickets.documents.identity import file_name, read_id, read_title
from finding_tickets.documents.locations import read_code, read_locations, read_mentioned, stated_locations
from finding_tickets.documents.relations import read_references, read_relations, stated_relations
from finding_tickets.documents.remediation import read_remediation
from finding_tickets.documents.resolutions import (
    outcome_of,
    read_corrections,
    read_done,
    read_outcome,
    read_resolution,
    read_severity_changes,
)
from finding_tickets.documents.review_layouts import read_reviews, reviewing
from finding_tickets.documents.review_tokens import reviewer_word
from finding_tickets.documents.section_kinds import SectionKind
from finding_tickets.documents.sections import DocumentPart
from finding_tickets.documents.source import Excerpt, Source, Values
from finding_tickets.model.problem import Level
from finding_tickets.model.ticket import Ticket
from finding_tickets.model.vocabulary import Outcome, Status, word_for

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
_REPORT_LIST = "reportfiles"
_REPORT_SECTION = re.compile(r"\s*section\s*:\s*", re.IGNORECASE)
_SUMMARIES = [
    "Summary",
    "Problem",
    "Description",
    "Issue",
    "Symptom",
    "Observed Behaviour",
    "Observed Behavior",
]
_FIXES = ["Recommended Fix", "Proposed Fix", "Suggested Fix", "Fix Plan", "Fix", "Recommendation"]
_FIXED = ("fixed", "datefixed", "fixedon")
_CLOSED = frozenset(["closed", "resolved", "fixed", "date", "closedon", "resolvedon", "fixedon", "fixdate"])
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SETTLED = frozenset([Status.CLOSED, Status.FIXED, Status.WONT_FIX, Status.INVALID])
_OUTCOME_OF_STATUS = {
    Status.FIXED.value: Outcome.FIXED,
    Status.WONT_FIX.value: Outcome.WONT_FIX,
    Status.INVALID.value: Outcome.NOT_A_BUG,
}


def read_finding(
    source: Source, sections: Sequence[DocumentPart], metadata: Metadata, title: Excerpt | None
) -> Ticket:
    """The ticket that ``sections`` make up."""
    words, named = source.vocabulary, file_name(source.path, source.vocabulary)
    of_kind: Mapping[SectionKind | None, list[DocumentPart]] = defaultdict(list)
    for part in sections:
        of_kind[part.kind].append(part)
    # All sections but these two are in the ticket's own words.
    own = [p for p in sections if p.kind not in (SectionKind.METADATA, SectionKind.CROSS_REVIEW)]
    done = (SectionKind.RESOLUTION, SectionKind.CORRECTION)
    weighed = [p for p in sections if p.kind in done or (p.kind is None and "severity" in p.name.split())]
    closing = [
        entry for part in of_kind[SectionKind.RESOLUTION] for entry in part.entries if entry.key in _CLOSED
    ]
    dated = (entry.value.record(value=entry.plain) for entry in closing if _DATE.match(entry.plain))
    identity, status = read_id(metadata, title), metadata.word("Status", words.statuses)
    values: Values = {
        "path": source.path,
        "id": identity,
        "title": read_title(metadata, title, identity["value"]),
        "metadata": metadata.rows,
        "severity": metadata.word("Severity", words.severities, mentioned=True),
        "status": status,
        "batch": metadata.number("Batch"),
        "agent": metadata.string("Agent"),
        "domains": metadata.strings("Domain"),
        "assignee": metadata.string("Assignee"),
        "created": metadata.string("Created"),
        "updated": metadata.string("Updated"),
        "code_repository": metadata.string("Code Repository"),
        "closed": metadata.string("Closed") or next(dated, None),
        "locations": _locations(of_kind, metadata),
        "summary": _summary(of_kind, metadata),
        "recommended_fix": next((part.body.record() for part in of_kind[SectionKind.FIX]), None)
        or _labelled(metadata, _FIXES),
        "related": list(stated_relations(metadata.entries.values())),
        "checklist": [item for part in _checked(sections) for item in read_checklist(part)],
        "reviews": [review for part in reviewing(sections) for review in read_reviews(part)],
        "severity_changes": read_severity_changes(metadata, weighed),
        "checked_claims": list(_checked_claims(own)),
        "corrections": list(read_corrections(own)),
        "remediation": next(map(read_remediation, of_kind[SectionKind.REMEDIATION]), None),
        "sections": [part.record() for part in sections],
        **_resolution(of_kind, metadata, status),
    }
    # What the file's name says counts only where the ticket does not say it itself. Such a value has an
    # empty span, so that no edit takes it for text.
    if named.severity and values["severity"] is None:
        values["severity"] = source.text(0, 0).record(value=named.severity)
    if named.domain and not values["domains"]:
        values["domains"] = [source.text(0, 0).record(value=named.domain)]
    if values["agent"]:
        # The first of several, in the register's word where it has one.
        agents = [each["value"] for each in metadata.strings("Agent")]
        values["agent"]["value"] = reviewer_word(agents[0], words) or agents[0] if agents else ""
        values["agent"] = values["agent"] if agents else None
    for field, kind, read in EXTRACTORS:
        values.setdefault(field, []).extend(found for part in of_kind[kind] for found in read(part))
    return Ticket.model_validate(values)


def read_categories(part: DocumentPart) -> Iterator[Values]:
    """Every category of the list, ticked or not."""
    for text, ticked in _boxes(part):
        yield text.record(name=text.plain, ticked=ticked)


def read_checklist(part: DocumentPart) -> Iterator[Values]:
    """Every item with a check box."""
    for text, done in _boxes(part):
        yield text.record(text=text.plain, done=done)


def _boxes(part: DocumentPart) -> Iterator[tuple[Excerpt, bool]]:
    for item in part.by_kind["Item"]:
        if item.checked is not None:
            yield part.source.text(*text_of(item)), item.checked


def read_reports(part: DocumentPart) -> list[Values]:
    """The reports that an appendix names: ``Report file`` and ``Section`` in pairs, or a list of files."""
    source, found = part.source, []
    entries = list(labelled_values(source, part.blocks, _REPORT_LABELS))
    for index, entry in enumerate(entries):
        if entry.key in _FILE_KEYS:
            after = entries[index + 1 : index + 2]
            section = next((each for each in after if each.key in ("section", "sections")), None)
            text = source.text(entry.value.start, section.value.end if section else entry.value.end)
            found.append(text.record(file=entry.plain, section=section.plain if section else ""))
    # The oldest tickets list their reports below one label.
    announced = False
    for block in part.blocks if any(entry.key == _REPORT_LIST for entry in part.entries) else ():
        # Below ``**Report files:**`` stands a file in backticks, then its section.
        for item in block.children if announced and block.kind == "List" else ():
            text = source.text(*text_of(item))
            spans = text.code_spans()
            file = spans[0].raw if spans else text.plain.partition(" ")[0]
            section_name = _REPORT_SECTION.sub("", text.plain.removeprefix(file), count=1).strip()
            found.append(text.record(file=file, section=section_name))
        announced = any(entry.key == _REPORT_LIST for entry in labelled_values(source, [block]))
    # Without any label, the Markdown files in backticks.
    mentioned = source.text(part.start, part.end).code_spans() if not found else []
    return found or [text.record(file=text.raw, section="") for text in mentioned if text.raw.endswith(".md")]


EXTRACTORS: tuple[tuple[str, SectionKind | None, Callable[[DocumentPart], Iterable[Values]]], ...] = (
    ("categories", SectionKind.SUMMARY, read_categories),
    ("evidence", SectionKind.PROBLEM, read_code),
    ("evidence", SectionKind.DESCRIPTION, read_code),
    ("evidence", None, read_code),
    ("related", SectionKind.RELATED, read_relations),
    ("related", SectionKind.REFERENCES, read_references),
    ("reports", SectionKind.APPENDIX, read_reports),
)
"""Which field is read from every section of which kind, and by what; the rest depends on several sections."""

PartsByKind = Mapping[SectionKind | None, list[DocumentPart]]


def _checked(sections: Sequence[DocumentPart]) -> Iterator[DocumentPart]:
    """The parts whose check boxes are checks: the verification, what was done, and parts so headed within."""
    kinds = (SectionKind.VERIFICATION, SectionKind.RESOLUTION, SectionKind.CORRECTION)
    for part in sections:
        if part.kind in kinds or (len(sections) == 1 and part.heading and part.heading.level == 1):
            yield part
        elif part.kind is not SectionKind.CROSS_REVIEW and any(True for _ in _boxes(part)):
            yield from _checked(part.parts)


def _locations(of_kind: PartsByKind, metadata: Metadata) -> list[Values]:
    """The location section's places; without one, those in the metadata, or the files that were changed."""
    if of_kind[SectionKind.LOCATION]:
        return [place for part in of_kind[SectionKind.LOCATION] for place in read_locations(part)]
    stated = list(stated_locations(metadata.entries.values()))
    return stated or [place for part in of_kind[SectionKind.FILES_CHANGED] for place in read_mentioned(part)]


def _labelled(metadata: Metadata, names: Iterable[str]) -> Values | None:
    """What a ticket without sections says under the first of the labels that it has."""
    entries = (metadata.get(name) for name in names)
    return next((entry.value.record() for entry in entries if entry), None)


def _summary(of_kind: PartsByKind, metadata: Metadata) -> Values | None:
    """The one-line summary, else the first paragraph of what says what the problem is."""
    for part in (*of_kind[SectionKind.SUMMARY], *of_kind[SectionKind.PROBLEM]):
        labelled = [entry.value for entry in part.entries if entry.key.endswith("summary")]
        for text in (*labelled, *part.paragraphs):
            return text.record()
    return _labelled(metadata, _SUMMARIES)


def _resolution(of_kind: PartsByKind, metadata: Metadata, status: Values | None) -> Values:
    """The outcome and the resolution: the first section that states an outcome, else the first one.

    The outcome is that of the metadata, else of the newest correction, of the resolution, of a proposal that
    is marked as done, or of the status.
    """
    words = metadata.source.vocabulary
    resolutions = [(part, read_outcome(part)) for part in of_kind[SectionKind.RESOLUTION]]
    part, ended = next(
        (each for each in resolutions if each[1]), resolutions[0] if resolutions else (None, None)
    )
    # A resolution in an open ticket may be advice that it was filed with.
    settled = status is not None and status["value"] in _SETTLED
    read = read_resolution(part, ended["value"] if ended else None, settled=settled) if part else None
    row = metadata.get("Resolution")
    if row:
        outcome = outcome_of(row.plain, words.outcomes)
        if outcome is None:
            row.value.report(
                "unknown-word", f"Resolution is {row.plain!r}", f"one of {', '.join(words.outcomes)}"
            )
        return {"outcome": row.value.record(value=outcome), "resolution": read}
    # A later correction outranks what it corrects, and words outrank what a status or a date implies.
    corrected = [read_outcome(each) for each in reversed(of_kind[SectionKind.CORRECTION])]
    done = [read_done(each) for each in of_kind[SectionKind.FIX]]
    stated = [*corrected, ended, *done, _outcome_of_status(metadata, status)]
    # A row that says when the finding was fixed says that it was.
    dated = [entry for name in _FIXED if (entry := metadata.entries.get(name)) and _DATE.match(entry.plain)]
    stated += [entry.value.record(value=Outcome.FIXED) for entry in dated]
    found = next((each for each in stated if each), None)
    # Only of a closed ticket somebody will ask how it was closed.
    if found is None and part:
        hint = "write **Status:** and one of " + ", ".join(words.outcomes)
        closed = status is not None and status["value"] == Status.CLOSED
        level = Level.WARNING if closed else Level.NOTE
        message = "the resolution states no outcome"
        part.source.report("resolution-outcome", part.start, message, hint=hint, level=level)
    return {"outcome": found, "resolution": read}


def _outcome_of_status(metadata: Metadata, status: Values | None) -> Values | None:
    """The outcome that a status means, or that it names beside: ``closed (won't fix)``."""
    row, words = metadata.get("Status"), metadata.source.vocabulary
    if row is None or status is None:
        return None
    outcome = _OUTCOME_OF_STATUS.get(status["value"])
    named = word_for(row.plain, words.outcomes) or not word_for(row.plain, words.statuses)
    if status["value"] == Status.CLOSED and named:
        outcome = outcome_of(row.plain, words.outcomes)
    return row.value.record(value=outcome) if outcome else None


def _checked_claims(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """The rows of every table with a column of claims and one that says what came of them."""
    for table in (table for part in parts for table in part.tables):
        claim = table.column(_CLAIM)
        status = table.column(_STATUS, claim)
        evidence = table.column(_EVIDENCE, claim, status)
        for row in table.records if claim and (status or evidence) else ():
            found = row[status].plain if status else ""
            lowered = found.lower()
            # "Partially true" decides nothing, and "not correct" is looked for before "correct".
            holds = None
            if not _OPEN.match(lowered) and (_FALSE.search(lowered) or _TRUE.search(lowered)):
                holds = _FALSE.search(lowered) is None
            yield row_of_record(row).record(
                claim=row[claim].plain if claim else "",
                status=found,
                holds=holds,
                evidence=row[evidence].plain if evidence else "",
            )
