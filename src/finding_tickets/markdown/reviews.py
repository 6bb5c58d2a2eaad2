"""Cross-reviews: who reviewed a finding, with which verdict, and why, in every form they are written in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from finding_tickets.markdown.blocks import Block
from finding_tickets.markdown.entries import Entry, entries, text_of
from finding_tickets.markdown.inline import plain
from finding_tickets.markdown.metadata import field
from finding_tickets.markdown.parts import Part
from finding_tickets.markdown.source import Source
from finding_tickets.markdown.tables import columns, records
from finding_tickets.model.record import Field, Text
from finding_tickets.model.ticket import Review
from finding_tickets.model.vocabulary import Opinion, squeeze, word_for

_TITLE = re.compile(r"cross\W*reviews?\b\W*", re.IGNORECASE)
_REVIEWER_COLUMNS = ("agent", "reviewer", "specialist", "domain")
_EVALUATION_COLUMNS = ("evaluation", "comment", "comments", "notes", "rationale", "reasoning")
_EVALUATION = "evaluation"
_ITEM = re.compile(r"(?P<who>[^:\u2014]+?)\s*[:\u2014-]\s*(?P<what>.*)", re.DOTALL)


@dataclass(frozen=True)
class _Draft:
    """The pieces of one review, as far as they have been found."""

    part: Part
    text: Text
    reviewer: Text | None
    verdict: Text
    evaluation: Text | None


def read_reviews(part: Part) -> tuple[Review, ...]:
    """The reviews in one cross-review section, in its order."""
    drafts = list(_drafts(part, _who(part)))
    if not drafts:
        part.source.report("review-form", part.line, f"no verdict found in {part.title!r}")
    return tuple(_review(draft) for draft in drafts)


def is_cross_review(title: str) -> bool:
    """Whether a section of this title holds cross-reviews."""
    return _TITLE.match(title) is not None


def reviewer_word(source: Source, name: str) -> str | None:
    """The register's word for a reviewer: ``DRL Specialist`` is ``drl``; None for an unknown one."""
    wanted = squeeze(name)
    for word, spellings in source.vocabulary.agents.items():
        if any(squeeze(spelling) in wanted for spelling in (word, *spellings)):
            return word
    return None


def _who(part: Part) -> Text | None:
    """The reviewer that a heading names: ``Cross-Review (DRL)``, ``Cross-Review: DRL`` or ``DRL``."""
    heading = part.heading
    if heading is None or heading.first < 0:
        return None
    match = _TITLE.match(part.source.raw(heading.first, heading.last))
    start = heading.first + (len(match[0].encode()) if match else 0)
    end = heading.last - part.source.data[start : heading.last].endswith(b")")
    text = part.source.text(start, end)
    return text if text.raw else None


def _drafts(part: Part, who: Text | None) -> Iterator[_Draft]:
    """The reviews of a part; ``who`` is the reviewer that its heading names."""
    inner = [each for each in part.parts if each.heading and not each.name.startswith(_EVALUATION)]
    own = tuple(block for block in part.blocks if not inner or block.end <= inner[0].start)
    yield from _by_table(part, own, who)
    for each in inner:
        yield from _drafts(each, _who(each))


def _by_table(part: Part, blocks: Sequence[Block], who: Text | None) -> Iterator[_Draft]:
    tables = [block for block in blocks if block.kind == "Table"]
    found = False
    for table in tables:
        rows = _rows(part, table, blocks)
        found = found or bool(rows)
        for row in rows:
            yield _from_row(part, row, blocks, who, alone=len(rows) == 1)
    if not found:
        yield from _by_labels(part, blocks, who)
        yield from _by_items(part, blocks)


def _rows(part: Part, table: Block, blocks: Iterable[Block]) -> list[dict[str, Text]]:
    """The rows of a table with a column of verdicts, with those that stray below the table."""
    titles = columns(part.source, table)
    if "verdict" not in titles or any(_opinion(part.source, title) for title in titles):
        return []
    rows = list(records(part.source, table))
    strays = [block for block in blocks if block.kind == "Paragraph" and block.start >= table.end]
    rows.extend(row for block in strays if (row := _stray_row(part.source, block, titles)))
    return rows


def _stray_row(source: Source, block: Block, titles: list[str]) -> dict[str, Text] | None:
    """A paragraph that is written as a row of a table without its header."""
    start, end = source.trimmed(block.start, block.end)
    if source.data[start : start + 1] != b"|" or source.data[end - 1 : end] != b"|":
        return None
    pieces = source.data[start + 1 : end - 1].split(b"|", len(titles) - 1)
    if len(pieces) != len(titles):
        return None
    source.report(
        "table-header", source.line(start), "a table row without a header; read with the table above"
    )
    texts, at = [], start + 1
    for piece in pieces:
        texts.append(source.text(at, at + len(piece)))
        at += len(piece) + 1
    return dict(zip(titles, texts, strict=True))


def _from_row(
    part: Part, row: dict[str, Text], blocks: Sequence[Block], who: Text | None, *, alone: bool
) -> _Draft:
    named = next((row[title] for title in _REVIEWER_COLUMNS if row.get(title) and row[title].raw), None)
    evaluation = next((row[title] for title in _EVALUATION_COLUMNS if title in row), None)
    if evaluation is None and named is not None:
        evaluation = _evaluation_of(part, blocks, named)
    if evaluation is None and alone:
        evaluation = _prose(part, blocks)
    first, last = min(row.values(), key=_start), max(row.values(), key=_start)
    text = part.body if alone else part.source.text(first.span.start, last.span.end)
    return _Draft(part, text, _better(part.source, named, who), row["verdict"], evaluation)


def _start(text: Text) -> int:
    return text.span.start


def _evaluation_of(part: Part, blocks: Sequence[Block], reviewer: Text) -> Text | None:
    """The paragraph ``**DRL Evaluation:** ...`` that belongs to a row naming only reviewer and verdict."""
    who = reviewer_word(part.source, plain(reviewer.raw))
    for entry in entries(part.source, blocks):
        if entry.key.endswith(_EVALUATION) and who and reviewer_word(part.source, entry.label) == who:
            return entry.value
    return None


def _by_labels(part: Part, blocks: Sequence[Block], who: Text | None) -> Iterator[_Draft]:
    """A verdict as a labelled value: in a field table, a table's header, or a paragraph."""
    rows = list(entries(part.source, blocks))
    verdict = next((entry for entry in rows if entry.key == "verdict"), None)
    if verdict is None:
        return
    named = next((entry.value for entry in rows if entry.key in ("reviewer", "agent") and entry.plain), None)
    first_line, evaluation = _cut_first_line(part.source, verdict), _labelled_evaluation(rows)
    yield _Draft(
        part,
        part.body,
        _better(part.source, named, who),
        first_line,
        evaluation or _prose(part, blocks),
    )


def _labelled_evaluation(rows: Iterable[Entry]) -> Text | None:
    return next((entry.value for entry in rows if entry.key.endswith(_EVALUATION) and entry.plain), None)


def _cut_first_line(source: Source, entry: Entry) -> Text:
    """A labelled value reaches to the next label; a verdict is its first line."""
    start = entry.value.span.start
    return source.text(start, start + len(entry.value.raw.partition("\n")[0].encode()))


def _prose(part: Part, blocks: Sequence[Block]) -> Text | None:
    """What is written below the verdict: the rest of the part without tables, rules and the verdict."""
    inner = next((each for each in part.parts if each.name.startswith(_EVALUATION)), None)
    if inner:
        return inner.body if inner.body.raw else None
    kept = [block for block in blocks if block.kind not in ("Table", "Rule") and not _is_verdict(part, block)]
    return part.source.text(kept[0].start, kept[-1].end) if kept else None


def _is_verdict(part: Part, block: Block) -> bool:
    return any(entry.key == "verdict" for entry in entries(part.source, [block]))


def _by_items(part: Part, blocks: Iterable[Block]) -> Iterator[_Draft]:
    """Reviews as list items: ``- **DRL**: ENDORSE - the reason``."""
    for item in (item for block in blocks if block.kind == "List" for item in block.children):
        text = part.source.text(*text_of(item))
        match = _ITEM.fullmatch(text.raw)
        if (
            match is None
            or _opinion(part.source, match["what"].split(maxsplit=1)[0] if match["what"] else "") is None
        ):
            continue
        start = text.span.start + len(text.raw[: match.start("what")].encode())
        verdict_end = start + len(match["what"].split(maxsplit=1)[0].encode())
        yield _Draft(
            part,
            text,
            part.source.text(text.span.start, text.span.start + len(match["who"].encode())),
            part.source.text(start, verdict_end),
            part.source.text(verdict_end, text.span.end),
        )


def _better(source: Source, named: Text | None, who: Text | None) -> Text | None:
    """Of the reviewer in the table and the one in the heading, the one whom the register knows."""
    known = [text for text in (named, who) if text and reviewer_word(source, plain(text.raw))]
    return next(iter([*known, *(text for text in (named, who) if text)]), None)


def _opinion(source: Source, words: str) -> Opinion | None:
    """The opinion that a verdict states: its first word that is one."""
    found = (word_for(word, source.vocabulary.opinions) for word in plain(words).split())
    return next((Opinion(word) for word in found if word), None)


def _review(draft: _Draft) -> Review:
    source, verdict = draft.part.source, plain(draft.verdict.raw)
    opinion = _opinion(source, verdict)
    if opinion is None:
        hint = f"one of {', '.join(source.vocabulary.opinions)}"
        source.report("unknown-word", draft.verdict.span.line, f"the verdict is {verdict!r}", hint=hint)
    return Review(
        raw=draft.text.raw,
        span=draft.text.span,
        reviewer=_reviewer(draft),
        verdict=field(draft.verdict, verdict),
        opinion=opinion,
        evaluation=draft.evaluation,
    )


def _reviewer(draft: _Draft) -> Field[str] | None:
    source = draft.part.source
    if draft.reviewer is None:
        source.report("review-reviewer", draft.text.span.line, "the cross-review does not name its reviewer")
        return None
    name = plain(draft.reviewer.raw)
    word = reviewer_word(source, name)
    if word is None:
        hint = f"the agents of this register are {', '.join(source.vocabulary.agents)}"
        source.report("unknown-word", draft.reviewer.span.line, f"the reviewer is {name!r}", hint=hint)
    return field(draft.reviewer, word or name)
