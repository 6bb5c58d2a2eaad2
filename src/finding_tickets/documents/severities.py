"""Severities that were looked at again: confirmed, lowered or raised; the original and the new."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from finding_tickets.documents.entries import Entry, entries
from finding_tickets.documents.parts import Part, nested
from finding_tickets.documents.phrases import only_word_in
from finding_tickets.documents.source import Source
from finding_tickets.model.record import Text
from finding_tickets.model.ticket import SeverityChange
from finding_tickets.model.vocabulary import Severity, word_for

_TOPIC = "severity"
_ORIGINAL = re.compile(r"(?:original|initial|previous|old|filed|was|before|from)(?:severity)?")
_REVISED = re.compile(
    r"(?:revised|confirmed|new|final|adjusted|updated|corrected|actual|now|after|to|downgraded|upgraded|current)"
    r"(?:to)?(?:severity)?"
)
_BARE = re.compile(rf"(?:{_ORIGINAL.pattern})|(?:{_REVISED.pattern})|severity")
_ADVICE = re.compile(r"\b(?:recommend|suggest|should|could|would|propos|consider)\w*[^.\n]*\Z", re.IGNORECASE)
# One of these is in every text that states a change.
_SIGNS = ("\u2192", "\u21d2", "->", "=>", "from", "graded to", "severity")
_MARK = r"[`*\"'\s]*"


def read_changes(source: Source, stated: Entry | None, parts: Iterable[Part]) -> Iterator[SeverityChange]:
    """The changes that the metadata's row and ``parts`` state, each once; advice to change it is none."""
    seen: set[tuple[Severity | None, Severity]] = set()
    found = [*_in_row(source, stated), *(change for part in parts for change in _of_part(part))]
    for change in found:
        if (change.original, change.revised) not in seen:
            seen.add((change.original, change.revised))
            yield change


def _in_row(source: Source, stated: Entry | None) -> Iterator[SeverityChange]:
    """``P1 → P3``, ``P3 (downgraded from P1)``, ``~~P1~~ P3`` in the row of the severity."""
    if stated is None:
        return
    words = source.vocabulary.severities
    mentioned = [word for token in re.findall(r"\w+", stated.plain) if (word := word_for(token, words))]
    revised = only_word_in(stated.plain, words)
    others = [word for word in mentioned if word != revised]
    if revised and others:
        yield _change(stated.value, others[0], revised)


def _of_part(part: Part) -> Iterator[SeverityChange]:
    """Labelled pairs under a heading on the severity, else what the text says."""
    within = [each for each in nested([part]) if _TOPIC in each.name.split()]
    for each in within:
        yield from _of_pairs(each)
    labelled = [entry for entry in part.entries if _TOPIC in entry.key]
    yield from _pair(part.source, labelled)
    heading = part.heading
    start = heading.start if heading else part.start
    yield from _in_text(part.source, part.source.text(start, part.end))


def _of_pairs(part: Part) -> Iterator[SeverityChange]:
    yield from _pair(part.source, list(entries(part.source, part.blocks, _BARE)))


def _pair(source: Source, stated: list[Entry]) -> Iterator[SeverityChange]:
    """An original and a revised severity, each under its own label."""
    words = source.vocabulary.severities
    old = next((entry for entry in stated if _ORIGINAL.fullmatch(entry.key)), None)
    new = next((entry for entry in stated if _REVISED.fullmatch(entry.key)), None)
    revised = only_word_in(new.plain.partition("(")[0], words) if new else None
    if new and revised:
        original = only_word_in(old.plain.partition("(")[0], words) if old else None
        first, last = (old or new).start, new.value.span.end
        yield _change(source.text(min(first, new.start), max(last, first)), original, revised)


def _in_text(source: Source, text: Text) -> Iterator[SeverityChange]:
    lowered = text.raw.lower()
    if not any(sign in lowered for sign in _SIGNS):
        return
    words = source.vocabulary.severities
    one = "|".join(re.escape(each) for word, spellings in words.items() for each in (word, *spellings))
    arrow = rf"\b(?P<a>{one})\b{_MARK}(?:\u2192|\u21d2|[-=]+>){_MARK}(?P<b>{one})\b"
    pair = rf"\bfrom{_MARK}(?P<c>{one})\b{_MARK}to{_MARK}(?P<d>{one})\b"
    new = rf"\b(?:down|up)graded to{_MARK}(?P<e>{one})\b"
    kept = rf"\bseverity (?:is )?confirmed(?: at| as)?:?{_MARK}(?P<f>{one})\b"
    for match in re.finditer(f"{arrow}|{pair}|{new}|{kept}", text.raw, re.IGNORECASE):
        if not _ADVICE.search(text.raw, max(0, match.start() - 200), match.start()):
            start = text.span.start + len(text.raw[: match.start()].encode())
            piece = source.text(start, start + len(match[0].encode()))
            original = match["a"] or match["c"]
            revised = match["b"] or match["d"] or match["e"] or match["f"]
            yield _change(
                piece, word_for(original, words) if original else None, word_for(revised, words) or ""
            )


def _change(text: Text, original: str | None, revised: str) -> SeverityChange:
    was = Severity(original) if original else None
    return SeverityChange(raw=text.raw, span=text.span, original=was, revised=Severity(revised))
