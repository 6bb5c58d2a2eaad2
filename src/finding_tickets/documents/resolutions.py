"""Read the resolution, the corrections and the changed severities of a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from finding_tickets.documents.metadata import (
    LabelledValue,
    Metadata,
    labelled_values,
    word_in,
)
from finding_tickets.documents.sections import (
    DocumentPart,
    PartsByKind,
    SectionKind,
    nested,
)
from finding_tickets.documents.source import Excerpt, Values
from finding_tickets.model.vocabulary import (
    UNSETTLED,
    Level,
    Outcome,
    Status,
    Words,
    squeeze,
    word_for,
)

_DONE = r"(?:fixed|resolved|implemented|addressed|applied|closed)"
# The first that matches counts: "won't fix (duplicate of ...)" is a won't-fix, "not fixed" is no outcome.
_PHRASES: Mapping[str, Outcome | None] = {
    rf"\bnot (?:yet )?(?:been )?{_DONE}\b|\bpartial"
    rf"|\b(?:to|will|should|must|can|could|may|might) be {_DONE}\b"
    r"|^\W*(?:recommend|suggest|propos|consider)": None,
    r"^\W*(?:already )?(?:fixed|implemented)\b": Outcome.FIXED,
    r"\bwo(?:n['\u2019]?t|nt|uld not)[ -]?fix|\bdeclined\b": Outcome.WONT_FIX,
    r"\bnot[ -]a[ -](?:bug|defect)\b|\bworking as (?:designed|intended)\b"
    r"|^\W*(?:closed? )?(?:as )?invalid\b|\b(?:is|as) invalid\b|\bfalse positive\b"
    r"|\bby design\b|\b(?:cannot|could not) (?:be )?reproduced?\b": Outcome.NOT_A_BUG,
    r"^\W*(?:closed? )?(?:as )?(?:an? )?duplicate\b"
    r"|\bduplicate of\b|\bas (?:an? )?duplicate\b": Outcome.DUPLICATE,
    r"\bacceptable\b|\bas[ -]is\b"
    r"|\bno (?:action|changes?|fix) (?:is )?(?:needed|required)\b": Outcome.ACCEPTABLE,
    r"\bfixed\b|\bresolved\b|\bimplemented\b|\baddressed\b": Outcome.FIXED,
}
_COMPILED = tuple(
    (re.compile(pattern, re.IGNORECASE), outcome)
    for pattern, outcome in _PHRASES.items()
)
_STATEMENTS = re.compile(
    r"(?:final)?(?:status|decision|disposition|resolution|verdict)|outcome|conclusion|resolutionstatus|closedas"
)
_DUPLICATE = re.compile(r"duplicate(?:of)?")
_ACTS = re.compile(r"date|(?:closed|resolved)(?:on)?|fixed|signoff|commits?|approvedby")
_FIX = re.compile(
    r"(?i)(\d+[.)] )?(the |final |implemented |actual )*fix(es)?"
    r"( description| applied| implemented| details)?( \(.*\))?",
)
_NO_FIX = re.compile(r"(?i)\W*(?:none\b|n/a\b|no\b|not\b|tbd\b)")
_PLACEHOLDER = re.compile(
    r"(?i)\W*(?:(?:none|n/a|tb[da]|to ?do|to be \w+|pending|awaiting)\b|$)|<[^>]*>\W*$|\[[^\]]*\]\W*$",
)
_OPENING = re.compile(
    r"(?i)(?P<marks>\W*)(?P<words>(?:closed (?:as |- ))?(?:already )?"
    r"(?:fixed|implemented|won['\u2019]?t[ -]fix|not a bug|duplicate of|working as (?:designed|intended)"
    r"|by design|no (?:action|changes?|fix) (?:needed|required)|acceptable as[ -]is)\b)",
)
_TOLD = re.compile(
    r"(?i)\b(?:was|were|(?:has|have) been) "
    r"(?P<words>(?:already )?(?:fixed|resolved|implemented|addressed))\b"
)
# What sets a heading's first words apart from what it states.
_TITLE_WORDS = re.compile(r"[:(\u2013\u2014]|\s-\s")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_CLOSED = [
    "closed",
    "resolved",
    "fixed",
    "date",
    "closedon",
    "resolvedon",
    "fixedon",
    "fixdate",
]
_CORRECTED = re.compile(r"status|correction|verdict|outcome")
_DATED = re.compile(r"date|corrected(?:on)?")

_OUTCOME_OF_STATUS: Mapping[str, Outcome] = {
    Status.FIXED: Outcome.FIXED,
    Status.WONT_FIX: Outcome.WONT_FIX,
    Status.INVALID: Outcome.NOT_A_BUG,
}

_ORIGINAL = re.compile(
    r"(?:original|initial|previous|old|filed|was|before|from)(?:severity)?"
)
_REVISED = re.compile(
    r"(?:revised|confirmed|new|final|adjusted|updated|corrected|actual|now|after|to|downgraded|upgraded|current)"
    r"(?:to)?(?:severity)?"
)
_BARE = re.compile(rf"(?:{_ORIGINAL.pattern})|(?:{_REVISED.pattern})|severity")
# "We recommend a downgrade to P3" changes nothing yet.
_ADVICE = re.compile(
    r"(?i)\b(?:recommend|suggest|should|could|would|propos|consider)\w*[^.\n]*\Z"
)
# One of these is in every text that states a change.
_SIGNS = ("\u2192", "\u21d2", "->", "=>", "from", "graded to", "severity")
_MARK = r"[`*\"'\s]*"


def read_resolution(
    of_kind: PartsByKind, metadata: Metadata, status: Values | None
) -> Values:
    """When it was closed, the outcome, and the resolution: the first section with an outcome, else the first.

    The outcome is stated by the metadata, else by the last correction, the resolution, or the status.
    """
    words = metadata.source.vocabulary.outcomes
    resolutions = [
        (part, _stated_outcome(part)) for part in of_kind[SectionKind.RESOLUTION]
    ]
    part, ended = next(
        (each for each in resolutions if each[1]), [*resolutions, (None, None)][0]
    )
    labelled = (
        entry
        for part, _ in resolutions
        for entry in part.entries
        if entry.key in _CLOSED
    )
    dates = (
        entry.value.record(value=entry.plain)
        for entry in labelled
        if _DATE.match(entry.plain)
    )
    values = {
        "outcome": None,
        "resolution": _resolution(part, ended, status) if part else None,
        "closed": metadata.string("Closed") or next(dates, None),
    }
    if row := metadata.get("Resolution"):
        outcome = outcome_of(row.plain, words)
        if outcome is None:
            row.value.report_unknown("Resolution", words)
        return {**values, "outcome": row.value.record(value=outcome)}
    # A later correction outranks what it corrects, and words outrank what a status or a date implies.
    corrected = [
        _stated_outcome(each) for each in reversed(of_kind[SectionKind.CORRECTION])
    ]
    stated = [*corrected, ended, _outcome_of_status(metadata, status)]
    values["outcome"] = next((each for each in stated if each), None)
    if part and not values["outcome"]:
        # Only of a closed ticket somebody will ask how it was closed.
        level = (
            Level.WARNING if status and status["value"] == Status.CLOSED else Level.NOTE
        )
        hint = "write **Status:** and one of " + ", ".join(words)
        part.source.report(
            "resolution-outcome",
            part.start,
            "the resolution states no outcome",
            hint,
            level,
        )
    return values


def _resolution(
    part: DocumentPart, stated: Values | None, status: Values | None
) -> Values:
    """The fields of a ``Resolution``; one in an open ticket may be advice that the ticket was filed with."""
    outcome, source = stated["value"] if stated else None, part.source
    settled = status is not None and status["value"] not in UNSETTLED | {None}
    acts = (
        _STATEMENTS.fullmatch(entry.key) or _ACTS.fullmatch(entry.key)
        for entry in part.entries
    )
    acted = any(acts) or _stating_headings(part) or next(_announcements(part), None)
    pattern = rf"(?i)duplicates? (?:of|to)[\s:*_`\[]*({source.vocabulary.id_pattern})"
    duplicate = re.search(pattern, source.raw(part.start, part.end))
    return part.body.record(
        outcome=outcome,
        proposed=not (settled or acted or outcome is Outcome.FIXED),
        duplicate_of=duplicate[1].upper() if duplicate else None,
    )


def outcome_of(phrase: str, outcomes: Words) -> Outcome | None:
    """The outcome that ``phrase`` means, by the register's own words first; None where it states none."""
    # The register's own words outrank phrases that only sound like an outcome.
    word = word_for(phrase, outcomes)
    if word is not None:
        return Outcome(word)
    return next(
        (outcome for pattern, outcome in _COMPILED if pattern.search(phrase)), None
    )


def _outcome_of_status(metadata: Metadata, status: Values | None) -> Values | None:
    """Return the outcome that a status means or names: ``closed (won't fix)``."""
    row, words = metadata.get("Status"), metadata.source.vocabulary
    if row is None or status is None:
        return None
    outcome = _OUTCOME_OF_STATUS.get(status["value"])
    named = word_for(row.plain, words.outcomes) or not word_for(
        row.plain, words.statuses
    )
    if status["value"] == Status.CLOSED and named:
        outcome = outcome_of(row.plain, words.outcomes)
    return row.value.record(value=outcome) if outcome else None


def _stated_outcome(part: DocumentPart) -> Values | None:
    """The words of a resolution that state its outcome, the most explicit first, or None."""
    texts = _stating_headings(part)
    texts += [entry.value for entry in part.entries if _STATEMENTS.fullmatch(entry.key)]
    for first in part.paragraphs[:1]:
        # ``Fixed in abc``, ``It was fixed``
        matches = (_OPENING.match(first.raw), _TOLD.search(first.raw))
        texts += [first.piece(*match.span("words")) for match in matches if match]
    for text in texts:
        if outcome := outcome_of(text.plain, part.source.vocabulary.outcomes):
            return text.record(value=outcome)
    for entry in part.entries:
        if _DUPLICATE.fullmatch(entry.key):
            return entry.value.record(value=Outcome.DUPLICATE)
    return next(
        (text.record(value=Outcome.FIXED) for text in _announcements(part)), None
    )


def _stating_headings(part: DocumentPart) -> list[Excerpt]:
    """Yield the outcomes that headings state: ``Status: FIXED``, ``Resolution (FIXED)``."""
    marks = (
        (headline, _TITLE_WORDS.search(headline.raw)) for headline in part.headlines
    )
    return [
        headline.piece(mark.end())
        for headline, mark in marks
        if mark and _STATEMENTS.fullmatch(squeeze(headline.raw[: mark.start()]))
    ]


def _announcements(part: DocumentPart) -> Iterator[Excerpt]:
    """The headings and labelled values that announce the fix, and so say that one was made."""
    for each in nested([part]):
        # Below the heading of a template there may be nothing yet.
        is_fix = each.headline and _FIX.fullmatch(each.headline.plain)
        if each.headline and is_fix and not _PLACEHOLDER.match(each.body.plain):
            yield each.headline
    for entry in part.entries:
        if _FIX.fullmatch(entry.label) and not _NO_FIX.match(entry.plain):
            yield entry.value


def read_corrections(parts: Iterable[DocumentPart]) -> Iterator[Values]:
    """The sections that take back or mend an earlier fix, and such parts of a resolution."""
    for part in parts:
        if part.kind is SectionKind.CORRECTION:
            dates = [
                part.title,
                *(entry.plain for entry in part.entries if _DATED.fullmatch(entry.key)),
            ]
            statements = (
                entry.value.record()
                for entry in part.entries
                if _CORRECTED.fullmatch(entry.key)
            )
            yield part.body.record(
                title=part.title,
                date=next(
                    (match[0] for match in map(_DATE.search, dates) if match), None
                ),
                statement=next(statements, None),
            )
        elif part.kind is SectionKind.RESOLUTION:
            yield from read_corrections(part.parts)


def read_severity_changes(
    metadata: Metadata, parts: Iterable[DocumentPart]
) -> list[Values]:
    """The changes that the metadata's row and ``parts`` state, each once; advice to change it is none."""
    words = metadata.source.vocabulary.severities
    found: list[Values] = []
    stated = metadata.get("Severity")
    # Two words without such a sign, as in "P1 - urgent", state no change.
    if stated and any(
        sign in stated.value.raw.lower() for sign in (*_SIGNS, "~~", "was", "(")
    ):
        # ``P1 -> P3``, ``P3 (downgraded from P1)``, ``~~P1~~ P3``
        mentioned = [
            word
            for token in re.findall(r"\w+", stated.plain)
            if (word := word_for(token, words))
        ]
        revised = word_in(stated.plain, words)
        others = [word for word in mentioned if word != revised]
        if revised and others:
            found.append(stated.value.record(original=others[0], revised=revised))
    for part in parts:
        for each in nested([part]):
            if "severity" in each.name.split():
                found += _labelled_change(
                    labelled_values(each.source, each.blocks, _BARE), words
                )
        start = part.heading.start if part.heading else part.start
        found += changes_in(part.source.text(start, part.end), words)
    unique: dict[tuple[str | None, str], Values] = {}
    for change in found:
        unique.setdefault((change["original"], change["revised"]), change)
    return list(unique.values())


def _labelled_change(
    entries: Iterable[LabelledValue], words: Words
) -> Iterator[Values]:
    """An original and a revised severity, each under its own label."""
    stated = list(entries)
    old = next((entry for entry in stated if _ORIGINAL.fullmatch(entry.key)), None)
    new = next((entry for entry in stated if _REVISED.fullmatch(entry.key)), None)
    original, revised = (
        word_in(entry.plain.partition("(")[0], words) if entry else None
        for entry in (old, new)
    )
    if new and revised:
        first, last = (old or new).start, new.value.end
        text = new.value.source.text(min(first, new.start), max(last, first))
        yield text.record(original=original, revised=revised)


def changes_in(text: Excerpt, words: Words) -> Iterator[Values]:
    """The changes that running text states."""
    lowered = text.raw.lower()
    if not any(sign in lowered for sign in _SIGNS):
        return
    # One pattern for all four ways, so that a text is scanned once and matches do not overlap.
    one = "|".join(
        re.escape(each)
        for word, spellings in words.items()
        for each in (word, *spellings)
    )
    arrow = rf"\b(?P<a>{one})\b{_MARK}(?:\u2192|\u21d2|[-=]+>){_MARK}(?P<b>{one})\b"
    pair = rf"\bfrom{_MARK}(?P<c>{one})\b{_MARK}to{_MARK}(?P<d>{one})\b"
    new = rf"\b(?:down|up)graded to{_MARK}(?P<e>{one})\b"
    confirmed = rf"\bseverity (?:is )?confirmed(?: at| as)?:?{_MARK}(?P<f>{one})\b"
    for match in re.finditer(f"(?i){arrow}|{pair}|{new}|{confirmed}", text.raw):
        if not _ADVICE.search(text.raw, max(0, match.start() - 200), match.start()):
            original = match["a"] or match["c"]
            revised = match["b"] or match["d"] or match["e"] or match["f"]
            yield text.piece(*match.span()).record(
                original=word_for(original, words) if original else None,
                revised=word_for(revised, words),
            )
