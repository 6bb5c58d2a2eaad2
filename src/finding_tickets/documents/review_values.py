"""Values that stand anywhere in a review: its verdict, its scores, its claims of speed, its artifacts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from finding_tickets.documents.blocks import Block, walk
from finding_tickets.documents.entries import text_of
from finding_tickets.documents.inline import code_spans, plain, words_of
from finding_tickets.documents.metadata import field
from finding_tickets.documents.parts import Part, nested
from finding_tickets.documents.source import Source
from finding_tickets.documents.tables import table_of
from finding_tickets.model.record import Field, Text
from finding_tickets.model.review import Artifact, PerformanceClaim, Score
from finding_tickets.model.vocabulary import squeeze

_VERDICTS = (
    re.compile(r"(?:final |overall |review )*verdict"),
    re.compile(r"(?:final |overall )*(?:assessment|decision|approval)"),
    re.compile(r"(?:final |overall )*(?:recommendation|status|result|conclusion|outcome)"),
)
_SAYS_VERDICT = re.compile(
    r"\W*(?:approve[d]?|ready\b|accept(?:ed|able)?|reject(?:ed)?|changes requested|request changes|needs \w+"
    r"|not ready|blocked|pass(?:ed)?|fail(?:ed)?|lgtm|merge|ship|conditional\w*|complete|do not merge)\b",
    re.IGNORECASE,
)
_OVERALL = ("overall", "overallscore", "qualityscore", "score", "total", "overallrating", "overallgrade")
_SCORE = re.compile(
    r"(?P<value>\d+(?:\.\d+)?)\s*(?:/|out of)\s*(?P<out_of>\d+(?:\.\d+)?)\s*(?P<remark>.*)", re.DOTALL
)
_SCORES = re.compile(r"score|rating|grade|points")
_TOTAL = re.compile(r"^[^\w\r\n]*(total\b.*)$", re.IGNORECASE | re.MULTILINE)
_SIGNED = re.compile(r"[^\w\s(]")
_BOLD = re.compile(r"\W*?\*\*(?P<words>[^*]+)\*\*")
_LABEL_AND_VALUE = 2
_BEFORE_WORDS = re.compile(r"^[^\w]+")
_FILES = re.compile(
    r"(?:files?|tests?) (?:changed|modified|created|added|deleted|touched|reviewed)|(?:changed|new) files"
)


def read_verdict(parts: Sequence[Part]) -> Field[str] | None:
    """The verdict, without the sign in front of it.

    A labelled verdict counts before an assessment and this before a recommendation that says as much; without
    any of them, a heading does, and last a text that begins with it in bold.
    """
    labelled = [entry for part in parts for entry in part.entries if entry.plain]
    for rank, pattern in enumerate(_VERDICTS):
        for entry in labelled:
            sure = rank < len(_VERDICTS) - 1 or _SAYS_VERDICT.match(entry.plain)
            if sure and pattern.fullmatch(words_of(entry.label)):
                return field(entry.value, _BEFORE_WORDS.sub("", entry.plain))
    text = next((text for part in nested(parts) for text in _headed(part)), None) or _bold(parts)
    return field(text, _BEFORE_WORDS.sub("", plain(text.raw))) if text else None


def _headed(part: Part) -> Iterator[Text]:
    """``Verdict: APPROVED`` as a heading, ``APPROVED`` alone, or the first words below ``Verdict``."""
    heading = part.heading
    if heading is None or heading.level == 1:
        return
    label, colon, stated = part.source.raw(heading.first, heading.last).partition(":")
    named = any(pattern.fullmatch(words_of(label)) for pattern in _VERDICTS)
    if named and stated.strip():
        yield part.source.text(heading.first + len((label + colon).encode()), heading.last)
    elif _SAYS_VERDICT.match(part.title) and (part.title.isupper() or _SIGNED.match(part.title)):
        yield part.source.text(heading.first, heading.last)
    elif named:
        first = next((block for block in part.blocks if block.kind == "Paragraph"), None)
        words = part.source.raw(first.start, first.end).partition("\n")[0] if first else ""
        if first and _SAYS_VERDICT.match(words):
            yield part.source.text(first.start, first.start + len(words.encode()))


def _bold(parts: Iterable[Part]) -> Text | None:
    """The last bold words that begin a paragraph and are a verdict."""
    found = None
    for part in parts:
        for block in (each for each in part.blocks if each.kind == "Paragraph"):
            match = _BOLD.match(part.source.raw(block.start, block.end))
            if match and _SAYS_VERDICT.match(match["words"]):
                start = block.start + len(match[0][: match.start("words")].encode())
                found = part.source.text(start, start + len(match["words"].encode()))
    return found


def read_scores(parts: Iterable[Part]) -> Iterator[Score]:
    """Every labelled ``9.5/10``, and those in tables with a column of scores."""
    for part in parts:
        for entry in part.entries:
            yield from _score(entry.value, entry.label)
        for block in part.by_kind["Table"]:
            yield from _of_table(part, block)


def _of_table(part: Part, block: Block) -> Iterator[Score]:
    table = table_of(part.source, block)
    titles = table.titles
    scored = next((title for title in titles[1:] if _SCORES.fullmatch(title)), None)
    if scored is None or len(titles) <= _LABEL_AND_VALUE:
        return
    for row in table.records:
        rest = [plain(row[title].raw) for title in titles[titles.index(scored) + 1 :]]
        yield from _score(row[scored], plain(row[titles[0]].raw), remark=" ".join(rest))


def _score(text: Text, name: str, remark: str = "") -> Iterator[Score]:
    match = _SCORE.fullmatch(plain(text.raw))
    if match and float(match["out_of"]) > 0:
        yield Score(
            raw=text.raw,
            span=text.span,
            name="overall" if squeeze(name) in _OVERALL else name,
            value=float(match["value"]),
            out_of=float(match["out_of"]),
            remark=match["remark"].strip("() -\u2013\u2014") or remark,
        )


def read_performance(parts: Iterable[Part]) -> Iterator[PerformanceClaim]:
    """What the sections on performance state: labelled values, and the totals in their code."""
    for part in (each for each in parts if "performance" in each.name):
        found = [(entry.value, f"{entry.label}: {entry.plain}") for entry in part.entries]
        for block in part.by_kind["CodeBlock"]:
            content = part.source.raw(block.first, block.last)
            for match in _TOTAL.finditer(content):
                start = block.first + len(content[: match.start(1)].encode())
                found.append((part.source.text(start, start + len(match[1].encode())), match[1].strip()))
        for text, words in sorted(found, key=lambda pair: pair[0].span.start):
            if text.raw:
                yield PerformanceClaim(raw=text.raw, span=text.span, text=words)


def read_artifacts(parts: Iterable[Part]) -> Iterator[Artifact]:
    """What the change made or touched, under the heading or the line that announces its group."""
    for part in parts:
        if part.name in ("artifacts", "deliverables") or _FILES.fullmatch(part.name):
            yield from _of_group(part)
        else:
            yield from read_artifacts(part.parts)


def _of_group(part: Part) -> Iterator[Artifact]:
    group = part.title
    for block in part.own_blocks:
        if block.kind == "Paragraph":
            group = plain(part.source.raw(block.start, block.end)).rstrip(" :")
        for item in (each for each in walk([block]) if each.kind == "Item"):
            yield _artifact(part.source, group, item)
    for each in part.parts:
        yield from _of_group(each)


def _artifact(source: Source, group: str, item: Block) -> Artifact:
    """The first code span names the artifact; the rest is a remark."""
    text = source.text(*text_of(item))
    spans = code_spans(source.data, text.span.start, text.span.end)
    words = plain(text.raw)
    name = plain(source.raw(*spans[0])) if spans else words.partition(" (")[0]
    remark = words.removeprefix(name).strip(" :\u2013\u2014-")
    if remark.startswith("(") and remark.endswith(")"):
        remark = remark[1:-1]
    return Artifact(raw=text.raw, span=text.span, group=group, name=name, remark=remark)
